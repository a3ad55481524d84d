"""A number that a requirement is held against, with what is known of how it would change with more samples.

Samples without a verdict (errors, timeouts, what is not finished) are never left out in silence. Of shares they are
counted at their worst on both ends: all of them have it for the upper limit, none of them for the lower one. So
whatever they turn out to be, the interval holds as if they had been there from the beginning.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.risk.absolute import EvasionComparison, compare_damage
from advrisk.risk.evasion import Floats
from advrisk.risk.mean_share import are_flags, mean_difference, mean_share
from advrisk.risk.paired_share import at_least

Flags = NDArray[np.bool_]
Settles = Callable[[int, float], bool]  # number of samples, limit -> whether they would probably decide

POWER = 0.8  # with which a stated number of samples decides


@dataclass(frozen=True)
class GateEstimate:
    """An estimate, and what a verdict must know beside it."""

    estimate: Estimate | None  # samples without a verdict counted at their worst, if `n_unknown`; None: there is none
    judged: Estimate | None = None  # of the samples with a verdict alone
    settles: Settles | None = None
    floor: float = 0.0  # standard error that more samples leave as it is
    on_floor: str = ""  # what would lower it
    n_unknown: int = 0  # samples counted at their worst
    n_left_out: int = 0  # samples of which the interval knows nothing
    pending: str = ""  # why nothing can be said yet
    why_not: str = ""  # why there is no estimate
    untried: str = ""  # why attacks say too little of it to let it pass
    on_untried: str = ""  # what would tell more; an attack of that size, if nothing is said
    caveats: tuple[str, ...] = ()  # what weakens it: it does not pass, unless the requirement says so
    disputed: str = ""  # which other numbers say the opposite: neither pass nor fail
    obstacle: str = ""  # which other numbers would say the opposite, however many samples are added
    n_samples: int = 0  # that it is made from, if the estimate counts something else
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> Estimate | None:
        """The estimate without what is counted at its worst."""
        return self.judged or self.estimate

    @property
    def on_unknown(self) -> str:
        if self.n_unknown:
            return (
                f"{counted(self.n_unknown, 'sample')} without a verdict (error, timeout or not finished) "
                f"{'counts' if self.n_unknown == 1 else 'count'} at the worst on both ends of the interval"
            )
        if self.n_left_out:
            return f"{counted(self.n_left_out, 'sample')} without a verdict (error or timeout) could not be counted"
        return ""


def share_estimate(values: Flags | Floats, *, level: float, n_unknown: int = 0, **more: Any) -> GateEstimate:
    """The share of samples that have something; of a model that answers at random, of queries: a share for each."""
    if not values.size:
        return GateEstimate(None, n_unknown=n_unknown, why_not="no sample has a verdict")
    judged = mean_share(values, level=level)
    estimate = mean_share(values, level=level, unknown=n_unknown)
    settles = _share_settles(judged.value, level)
    if not are_flags(values):
        settles = _mean_settles(judged, float(np.std(values)))
    return GateEstimate(estimate, judged, settles, n_unknown=n_unknown, **more)


def pair_estimate(
    first: Flags | Floats, second: Flags | Floats, *, level: float, n_unknown: int = 0, **more: Any
) -> GateEstimate:
    """The share of samples (or queries) that have something with the first model, less that with the second."""
    n = int(first.size)
    if n == 0:
        return GateEstimate(None, n_unknown=n_unknown, why_not="no sample has a verdict for both")
    judged = mean_difference(first, second, level=level)
    estimate = mean_difference(first, second, level=level, unknown=n_unknown) if n_unknown else judged
    if are_flags(first, second):
        one, other = first.astype(np.bool_), second.astype(np.bool_)
        settles = pair_settles(int((one & ~other).sum()), int((other & ~one).sum()), n, level)
    else:
        settles = _mean_settles(judged, float(np.std(first.astype(np.float64) - second)))
    return GateEstimate(estimate, judged, settles, n_unknown=n_unknown, **more)


def _mean_settles(judged: Estimate, spread: float) -> Settles:
    """Whether samples whose values spread like these would decide."""

    def settles(n_more: int, limit: float) -> bool:
        return _decided(abs(limit - judged.value), spread, 0.0, n_more, judged.level, 1.0)

    return settles


def damage_estimate(
    found: EvasionComparison, model: str, *, n_unknown: int, rng: np.random.Generator, cost: float = 1.0
) -> GateEstimate:
    """Damage under an evasion curve, times the cost of one."""
    judged = found.estimates[model]
    spread, floor = found.errors_of(model)
    estimate = judged
    if n_unknown:
        own = found._distances[found.models.index(model)]
        ends = {"low": np.append(own, np.full(n_unknown, np.inf)), "high": np.append(own, np.zeros(n_unknown))}
        worst = compare_damage(ends, found.evasion, level=found.level, rng=rng).estimates
        estimate = _between(judged, worst["low"].low, worst["high"].high)
    settles = _share_settles(judged.value, found.level) if judged.method == "Clopper-Pearson" else None
    return scaled(_smooth(estimate, judged, spread, floor, n_unknown, settles), cost)


def damage_pair_estimate(
    found: EvasionComparison, first: str, second: str, *, n_unknown: int, rng: np.random.Generator, cost: float = 1.0
) -> GateEstimate:
    """Damage of one model less that of another, on the same samples and under the same curve."""
    judged = found.difference(first, second)
    of_samples, floor = found.standard_errors(first, second)
    estimate = judged
    if n_unknown:
        one, other = (found._distances[found.models.index(model)] for model in (first, second))
        worst, best = np.zeros(n_unknown), np.full(n_unknown, np.inf)
        low = _difference(found, np.append(one, best), np.append(other, worst), rng).low
        high = _difference(found, np.append(one, worst), np.append(other, best), rng).high
        estimate = _between(judged, low, high)
    return scaled(_smooth(estimate, judged, of_samples * math.sqrt(found.n), floor, n_unknown, None), cost)


def standard_error(estimate: Estimate) -> float:
    """Of an interval that is taken for a normal one: of its longer side."""
    return max(estimate.high - estimate.value, estimate.value - estimate.low) / _z(estimate.level)


def number_estimate(
    estimate: Estimate, *, n: int, unit: float = 0.0, floor: float = 0.0, on_floor: str = "", **more: Any
) -> GateEstimate:
    """A number of which no more is known than its interval: its spread is taken from that, as if it were normal.

    `unit` is by how much one sample more may move it; `floor` the standard error that more samples leave as it is.
    """

    def settles(n_more: int, limit: float) -> bool:
        half = estimate.high - estimate.value if limit > estimate.value else estimate.value - estimate.low
        error = math.sqrt(max((half / _z(estimate.level)) ** 2 - floor**2, 0.0))
        return _decided(abs(limit - estimate.value), error * math.sqrt(n), floor, n_more, estimate.level, unit)

    told = settles if math.isfinite(estimate.high - estimate.low) else None
    return GateEstimate(estimate, None, told, floor, on_floor, n_samples=n, **more)


def both_settle(found: GateEstimate, other: GateEstimate, *, limit: float) -> GateEstimate:
    """An estimate that is settled only once another one is, too, against its own limit."""
    first, second = found.settles, other.settles
    if first is None or second is None:
        return replace(found, settles=None)
    return replace(found, settles=lambda n_more, own: first(n_more, own) and second(n_more, limit))


def counted_rows(n: int, *, level: float, of: int) -> GateEstimate:
    """A count, which is what it is."""
    return GateEstimate(Estimate(n, n, n, level, of, "count"))


def scaled(found: GateEstimate, cost: float) -> GateEstimate:
    """In the unit of the cost."""
    if cost == 1.0:
        return found
    inner = found.settles
    return GateEstimate(
        _times(found.estimate, cost),
        _times(found.judged, cost),
        (lambda n, limit: inner(n, limit / cost)) if inner is not None and cost > 0 else None,
        cost * found.floor,
        found.on_floor,
        found.n_unknown,
    )


def pair_settles(up: int, down: int, n: int, level: float) -> Settles:
    """Whether samples of which the same shares differ would decide, the difference being unlucky by POWER."""
    value, spread = (up - down) / n, math.sqrt(max((up + down) / n - ((up - down) / n) ** 2, 0.0))

    def settles(n_more: int, limit: float) -> bool:
        shift = math.copysign(_z(2 * POWER - 1) * spread / math.sqrt(n_more), limit - value) / 2
        first = round(n_more * max(up / n + shift, 0.0))
        second = round(n_more * max(down / n - shift, 0.0))
        first, second = min(first, n_more), min(second, n_more - min(first, n_more))
        below = limit > value
        p = at_least(first, second, n_more, limit) if below else at_least(second, first, n_more, -limit)
        return p <= (1 - level) / 2

    return settles


def _share_settles(value: float, level: float) -> Settles:
    """The same of one share."""

    def settles(n_more: int, limit: float) -> bool:
        from scipy.special import betainc

        share, end = (value, limit) if limit > value else (1 - value, 1 - limit)
        hits = math.ceil(n_more * share + _z(2 * POWER - 1) * math.sqrt(n_more * share * (1 - share)) - 1e-9)
        if hits >= n_more:
            return False
        return float(betainc(n_more - hits, hits + 1, 1 - end)) <= (1 - level) / 2  # P(X <= hits) at the limit

    return settles


def _smooth(
    estimate: Estimate,
    judged: Estimate,
    spread: float,
    floor: float,
    n_unknown: int,
    settles: Settles | None,
) -> GateEstimate:
    def usual(n_more: int, limit: float) -> bool:
        return _decided(abs(limit - judged.value), spread, floor, n_more, judged.level, 1.0)

    remedy = "the evasion curve is known too little; ask the detector more"
    return GateEstimate(estimate, judged, settles or usual, floor, remedy if floor else "", n_unknown)


def _decided(distance: float, spread: float, floor: float, n: int, level: float, unit: float) -> bool:
    """Whether an interval from n samples would leave out a limit so far away, with a probability of POWER.

    As in `decision.samples_to_decide`; where no two samples differ, one that was not seen may, and weighs more.
    """
    root = math.sqrt(n)
    unseen = unit / n if spread > 0 else unit * (1 - ((1 - level) / 2) ** (1 / n))
    return distance >= _z(level) * math.hypot(spread / root, floor) + unseen + _z(2 * POWER - 1) * spread / root


def _z(level: float) -> float:
    """The quantile that a two-sided normal interval of that level ends at."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def _difference(found: EvasionComparison, first: Floats, second: Floats, rng: np.random.Generator) -> Estimate:
    made = compare_damage({"first": first, "second": second}, found.evasion, level=found.level, rng=rng)
    return made.difference("first", "second")


def _between(judged: Estimate, low: float, high: float) -> Estimate:
    return Estimate(judged.value, min(low, judged.low), max(high, judged.high), judged.level, judged.n, judged.method)


def _times(found: Estimate | None, cost: float) -> Estimate | None:
    if found is None:
        return None
    method = f"{found.method}, x cost"
    return Estimate(cost * found.value, cost * found.low, cost * found.high, found.level, found.n, method)
