"""The estimate that a requirement is checked against, and whether more samples would decide.

Samples without a verdict (errors, timeouts, unfinished ones) are never left out silently. Shares count them at the
worst on both ends: as 1 for the upper limit, as 0 for the lower one. Whatever their outcome, the interval is valid as
if they had been included from the start.
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

POWER = 0.8  # probability that the stated number of samples decides


@dataclass(frozen=True)
class GateEstimate:
    """An estimate, and what limits the verdict on it."""

    estimate: Estimate | None  # with samples without a verdict counted at their worst, if `n_unknown`
    judged: Estimate | None = None  # of samples with a verdict only
    settles: Settles | None = None
    floor: float = 0.0  # standard error that more samples do not reduce
    on_floor: str = ""  # what would reduce it
    n_unknown: int = 0  # samples counted at their worst
    n_left_out: int = 0  # samples that the interval ignores
    pending: str = ""  # why the estimate is not final
    why_not: str = ""  # why there is no estimate
    untried: str = ""  # why the attacks are insufficient for a pass
    on_untried: str = ""  # the remedy; by default an attack of that size
    caveats: tuple[str, ...] = ()  # weaknesses: it passes only if the requirement allows caveats
    disputed: str = ""  # which other numbers contradict it: neither pass nor fail
    obstacle: str = ""  # which other numbers would contradict it, however many samples are added
    n_samples: int = 0  # its number of samples, if the estimate counts something else
    notes: tuple[str, ...] = ()

    @property
    def of_judged(self) -> Estimate | None:
        """The estimate from samples with a verdict."""
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
    """The mean of values by sample: flags, or shares of queries for a model that answers at random."""
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
    """The mean of the first model's values less that of the second's, paired by sample."""
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
    """Whether more samples with this spread would decide."""

    def settles(n_more: int, limit: float) -> bool:
        return _decided(abs(limit - judged.value), spread, 0.0, n_more, judged.level, 1.0)

    return settles


def damage_estimate(
    comparison: EvasionComparison, model: str, *, n_unknown: int, rng: np.random.Generator, cost: float = 1.0
) -> GateEstimate:
    """Damage under an evasion curve, times the cost of one."""
    judged = comparison.estimates[model]
    spread, floor = comparison.errors_of(model)
    estimate = judged
    if n_unknown:
        own = comparison._distances[comparison.models.index(model)]
        ends = {"low": np.append(own, np.full(n_unknown, np.inf)), "high": np.append(own, np.zeros(n_unknown))}
        worst = compare_damage(ends, comparison.evasion, level=comparison.level, rng=rng).estimates
        estimate = _between(judged, worst["low"].low, worst["high"].high)
    settles = _share_settles(judged.value, comparison.level) if judged.method == "Clopper-Pearson" else None
    return scaled(_smooth(estimate, judged, spread, floor, n_unknown, settles), cost)


def damage_pair_estimate(
    comparison: EvasionComparison,
    first: str,
    second: str,
    *,
    n_unknown: int,
    rng: np.random.Generator,
    cost: float = 1.0,
) -> GateEstimate:
    """Damage of one model less that of another, on the same samples and under the same curve."""
    judged = comparison.difference(first, second)
    of_samples, floor = comparison.standard_errors(first, second)
    estimate = judged
    if n_unknown:
        one, other = (comparison._distances[comparison.models.index(model)] for model in (first, second))
        worst, best = np.zeros(n_unknown), np.full(n_unknown, np.inf)
        low = _difference(comparison, np.append(one, best), np.append(other, worst), rng).low
        high = _difference(comparison, np.append(one, worst), np.append(other, best), rng).high
        estimate = _between(judged, low, high)
    return scaled(_smooth(estimate, judged, of_samples * math.sqrt(comparison.n), floor, n_unknown, None), cost)


def standard_error(estimate: Estimate) -> float:
    """The standard error of an estimate, from the longer side of its interval as if normal."""
    return max(estimate.high - estimate.value, estimate.value - estimate.low) / _z(estimate.level)


def number_estimate(
    estimate: Estimate, *, n: int, unit: float = 0.0, floor: float = 0.0, on_floor: str = "", **more: Any
) -> GateEstimate:
    """A number with an interval only, which gives its spread as if normal.

    `unit` is the change that one more sample may cause; `floor` is the standard error that more samples do not reduce.
    """

    def settles(n_more: int, limit: float) -> bool:
        half = estimate.high - estimate.value if limit > estimate.value else estimate.value - estimate.low
        error = math.sqrt(max((half / _z(estimate.level)) ** 2 - floor**2, 0.0))
        return _decided(abs(limit - estimate.value), error * math.sqrt(n), floor, n_more, estimate.level, unit)

    settles_if_finite = settles if math.isfinite(estimate.high - estimate.low) else None
    return GateEstimate(estimate, None, settles_if_finite, floor, on_floor, n_samples=n, **more)


def both_settle(estimate: GateEstimate, other: GateEstimate, *, limit: float) -> GateEstimate:
    """An estimate that is decided only once another one is, too, against its own limit."""
    first, second = estimate.settles, other.settles
    if first is None or second is None:
        return replace(estimate, settles=None)
    return replace(estimate, settles=lambda n_more, own: first(n_more, own) and second(n_more, limit))


def counted_rows(n: int, *, level: float, of: int) -> GateEstimate:
    """A count, which has no uncertainty."""
    return GateEstimate(Estimate(n, n, n, level, of, "count"))


def scaled(estimate: GateEstimate, cost: float) -> GateEstimate:
    """The estimate times a cost."""
    if cost == 1.0:
        return estimate
    inner = estimate.settles
    return GateEstimate(
        _times(estimate.estimate, cost),
        _times(estimate.judged, cost),
        (lambda n, limit: inner(n, limit / cost)) if inner is not None and cost > 0 else None,
        cost * estimate.floor,
        estimate.on_floor,
        estimate.n_unknown,
    )


def pair_settles(up: int, down: int, n: int, level: float) -> Settles:
    """Whether more samples with the same shares of differences would decide, with a probability of POWER."""
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
    """Whether more samples with the same share would decide, with a probability of POWER."""

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

    remedy = "the evasion curve is too uncertain; collect more answers for it"
    return GateEstimate(estimate, judged, settles or usual, floor, remedy if floor else "", n_unknown)


def _decided(distance: float, spread: float, floor: float, n: int, level: float, unit: float) -> bool:
    """Whether an interval from n samples would exclude a limit at this distance, with a probability of POWER.

    As in `decision.samples_to_decide`; if all samples are equal, a further one may differ, which adds a term.
    """
    root = math.sqrt(n)
    unseen = unit / n if spread > 0 else unit * (1 - ((1 - level) / 2) ** (1 / n))
    return distance >= _z(level) * math.hypot(spread / root, floor) + unseen + _z(2 * POWER - 1) * spread / root


def _z(level: float) -> float:
    """The normal quantile of a two-sided interval at that level."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def _difference(comparison: EvasionComparison, first: Floats, second: Floats, rng: np.random.Generator) -> Estimate:
    compared = compare_damage({"first": first, "second": second}, comparison.evasion, level=comparison.level, rng=rng)
    return compared.difference("first", "second")


def _between(judged: Estimate, low: float, high: float) -> Estimate:
    return Estimate(judged.value, min(low, judged.low), max(high, judged.high), judged.level, judged.n, judged.method)


def _times(estimate: Estimate | None, cost: float) -> Estimate | None:
    if estimate is None:
        return None
    method = f"{estimate.method}, x cost"
    return Estimate(
        cost * estimate.value, cost * estimate.low, cost * estimate.high, estimate.level, estimate.n, method
    )
