"""Dropping settings that cannot be among the worst any more: exact, so the worst are the same with and without it."""

from collections.abc import Sequence


def can_still_win(failures: int, remaining: int, others: Sequence[int], *, freeze: int) -> bool:
    """Whether a setting can still be among the `freeze` worst.

    It failed on `failures` samples, and `remaining` are to come. `others` are the failures of all other settings so
    far, which can only grow. It is out if `freeze` others have more than it can reach; a tie is not lost.
    """
    if len(others) < freeze:
        return True
    return failures + remaining >= sorted(others, reverse=True)[freeze - 1]
