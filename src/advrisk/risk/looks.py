"""When to look at a run that goes on, and how sure each look must be so that all of them together keep the promise.

A decision that is tried several times errs more often than once. Of the error alpha that is allowed in all, look k may
spend alpha_k with sum alpha_k <= alpha: whatever the looks have to do with each other, the probability that any of them
decides wrongly is at most the sum (Boole's inequality), as long as the interval of each is valid for its number of
samples, fixed in advance. So this holds for every quantity with such an interval. The looks are planned before the
first one, and share alpha equally, but for a part that is held back for samples that are added later (Pocock, "Group
sequential methods in the design and analysis of clinical trials", 1977, has equal shares, too; his constants are for
normal means).
"""

from collections.abc import Sequence
from itertools import accumulate

from advrisk.core.errors import RiskError

GROWTH = 1.5  # of the number of shards from look to look: few looks, and none comes long after it would have decided
LEAST = 30  # samples at a look: below, intervals say little, and a look would be wasted
HELD = 0.2  # of the error that is allowed, for looks at samples that are added later
_LEAST_SHARE = 1e-12
_HIGHEST = 1 - 1e-12  # a level beyond has no quantiles


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


def look_share(earlier: Sequence[float], own: Sequence[float], n_planned: int) -> float:
    """The share of alpha that the next look may spend, of `n_planned` looks that were planned together.

    `own` were spent by looks of that plan, `earlier` by those before samples were added. The looks of the first plan
    share all but `HELD`, those of each later one half of what was left when it began: each gets its part, whichever of
    the others are made. So there is always some left, and all looks that are ever made spend less than 1.
    """
    if n_planned < 1:
        raise RiskError(f"no look is planned, found {n_planned}")
    left = 1 - sum(earlier)
    share, rest = (left / 2 if earlier else 1 - HELD) / n_planned, left - sum(own)
    if rest <= _LEAST_SHARE:
        raise RiskError(
            f"looks have spent all of the error that is allowed, found {sum(earlier) + sum(own):g} of 1; begin "
            "another run"
        )
    return share if share < rest else rest / 2  # looks that nobody planned may have spent more


def strict_level(level: float, share: float, *, n_models: int = 2) -> float:
    """The level of an interval that may err with a share of 1 - level.

    Who names the best of J models errs if a worse one is told to be better than it: one side of J - 1 intervals. Two of
    them err on that side as often as one on both, so up to three models the level stays; beyond, it is split further.
    """
    return min(1 - (1 - level) * share * min(1.0, 2 / max(n_models - 1, 1)), _HIGHEST)
