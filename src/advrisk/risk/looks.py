"""When to look at a run that goes on, and how sure each look must be so that all of them together keep the promise.

A decision that is tried several times errs more often than once. Of the error alpha that is allowed in all, look k may
spend alpha_k with sum alpha_k <= alpha: whatever the looks have to do with each other, the probability that any of them
decides wrongly is at most the sum (Boole's inequality), as long as the interval of each is valid for its number of
samples, fixed in advance. So this holds for every quantity with such an interval. The looks are planned before the
first one, and share alpha equally (Pocock, "Group sequential methods in the design and analysis of clinical trials",
1977, has equal shares, too; his constants are for normal means).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from advrisk.core.errors import RiskError

GROWTH = 1.5  # of the number of shards from look to look: few looks, and none comes long after it would have decided
LEAST = 30  # samples at a look: below, intervals say little, and a look would be wasted


@dataclass(frozen=True)
class Seen:
    """What a look at a target saw, at which level."""

    met: bool
    said: str
    level: float


def look_places(sizes: Sequence[int], *, growth: float = GROWTH, least: int = LEAST) -> tuple[int, ...]:
    """After how many shards to look, where shards have these sizes; the last look is after all of them."""
    if not sizes or growth <= 1:
        raise RiskError(f"looks need shards and a growth above 1; found {len(sizes)} shards and {growth}")
    n_samples = list(accumulate(sizes))
    place = next((number for number, n in enumerate(n_samples, 1) if n >= least), len(sizes))
    places = [place]
    while places[-1] < len(sizes):
        places.append(min(len(sizes), max(places[-1] + 1, round(growth * places[-1]))))
    return tuple(places)


def look_share(spent: Sequence[float], n_left: int) -> float:
    """The share of alpha that the next look may spend: what is left, split over it and the looks after it."""
    if n_left < 1:
        raise RiskError(f"no look is left to be made, found {n_left}")
    return max(0.0, 1 - sum(spent)) / n_left


def strict_level(level: float, share: float, *, n_models: int = 2) -> float:
    """The level of an interval that may err with a share of 1 - level.

    Who names the best of J models errs if a worse one is told to be better than it: one side of J - 1 intervals. Two of
    them err on that side as often as one on both, so up to three models the level stays; beyond, it is split further.
    """
    return 1 - (1 - level) * share * min(1.0, 2 / max(n_models - 1, 1))
