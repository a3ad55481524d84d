"""Interim analyses of a run: when to schedule them, and alpha spending.

Testing repeatedly until a result appears inflates the error rate. So interim analysis k spends alpha_k of the total
error alpha, with sum alpha_k <= alpha. By Boole's inequality, the probability that any analysis decides wrongly is at
most the sum, however they depend on each other. This needs intervals that are valid for their number of samples, fixed
in advance, and holds for every quantity with such an interval. The schedule is fixed before the first analysis. Its
analyses share alpha equally, except for a reserve for samples that are added later. (Pocock, "Group sequential methods
in the design and analysis of clinical trials", 1977, uses equal shares, too; his constants are for normal means.)
"""

from collections.abc import Sequence
from itertools import accumulate

from advrisk.core.errors import RiskError

GROWTH = 1.5  # ratio of shards between analyses: few analyses, and none long after a decision was possible
LEAST = 30  # samples at the first analysis; with fewer, intervals are too wide to decide
RESERVE = 0.2  # share of alpha for samples that are added later
_LEAST_SHARE = 1e-12
_HIGHEST = 1 - 1e-12  # quantiles of a higher level are not finite


def interim_schedule(sizes: Sequence[int], *, growth: float = GROWTH, least: int = LEAST) -> tuple[int, ...]:
    """Numbers of shards after which to run an interim analysis, for shards of these sizes; the last is all of them."""
    if not sizes or growth <= 1:
        raise RiskError(f"interim analyses need shards and a growth above 1; found {len(sizes)} shards and {growth}")
    n_samples = list(accumulate(sizes))
    schedule = [next((number for number, n in enumerate(n_samples, 1) if n >= least), len(sizes))]
    while schedule[-1] < len(sizes):
        schedule.append(min(len(sizes), max(schedule[-1] + 1, round(growth * schedule[-1]))))
    return tuple(schedule)


def alpha_share(earlier: Sequence[float], own: Sequence[float], n_planned: int) -> float:
    """Share of alpha that the next of `n_planned` interim analyses of a schedule may spend.

    `own` lists the shares spent in this schedule, `earlier` those spent before samples were added. The analyses of the
    first schedule share all but `RESERVE`; those of each later one share half of what is left when it begins. A share
    does not depend on whether the other analyses are run. So some alpha is always left, and the total stays below 1.
    """
    if n_planned < 1:
        raise RiskError(f"a schedule needs at least one interim analysis, found {n_planned}")
    available = 1 - sum(earlier)
    share, unspent = (available / 2 if earlier else 1 - RESERVE) / n_planned, available - sum(own)
    if unspent <= _LEAST_SHARE:
        raise RiskError(
            f"interim analyses have spent all of alpha, found {sum(earlier) + sum(own):g} of 1; begin another run"
        )
    return share if share < unspent else unspent / 2  # analyses outside the schedule may have spent more


def strict_level(level: float, share: float, *, n_models: int = 2) -> float:
    """Level of an interval that may err with a share of 1 - level.

    Naming the best of J models errs if a worse one is declared better: one side of J - 1 intervals. One side of two
    intervals errs as often as both sides of one, so the level stays for up to three models and is split beyond.
    """
    return min(1 - (1 - level) * share * min(1.0, 2 / max(n_models - 1, 1)), _HIGHEST)
