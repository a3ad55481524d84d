"""Dropping settings that cannot be among the worst any more: exact, so the worst are the same with and without it."""

from collections.abc import Sequence


def can_still_win(greatest: float, others: Sequence[float], *, freeze: int) -> bool:
    """Whether a setting can still be among the `freeze` worst.

    `greatest` is the largest share of failures that it can reach, `others` the least that each other setting can end
    with. It is out if `freeze` others end with more than it can reach; a tie is not lost.
    """
    if len(others) < freeze:
        return True
    return greatest >= sorted(others, reverse=True)[freeze - 1]
