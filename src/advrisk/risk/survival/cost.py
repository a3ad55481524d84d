"""Cost of attacks relative to training: rates of failure and cost ratios.

Meyers et al., Eq. 5-8, with two repairs: a rate is no probability (that is 1 - exp(-r t)), and the time to be compared
with training is E[T], the integral of the survival function.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.risk.mean_share import mean_share
from advrisk.risk.proportion import t_quantile
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.frames import Floats

CostVerdict = Literal["broken", "not broken", "undecided"]

BROKEN_FACTOR = 10.0


@dataclass(frozen=True)
class Rate:
    """Failures per unit of time, and the probability of a failure within a time."""

    estimate: Estimate
    unit: str  # the unit of time

    in_json: ClassVar[InJson] = {"estimate": ""}

    def probability(self, time: float) -> Estimate:
        """1 - exp(-r t): probability of at least one failure within that time, at a constant rate."""
        if not time >= 0:
            raise RiskError(f"a time is at least 0, found {time}")
        value, low, high = (-math.expm1(-r * time) for r in self._ends)
        own = self.estimate
        return Estimate(value, low, high, own.level, own.n, f"1 - exp(-r t), t = {time:g} {self.unit}; {own.method}")

    @property
    def _ends(self) -> tuple[float, float, float]:
        return self.estimate.value, self.estimate.low, self.estimate.high


def benign_rate(wrong: ArrayLike, time: float, *, unit: str, level: float = 0.95) -> Rate:
    """f_ben = (1 - accuracy) / t: failures in each unit of time where clean inputs follow each other, t apart.

    `wrong` says of each sample whether it is, or in what share of queries.
    """
    if not (math.isfinite(time) and time > 0):
        raise RiskError(f"a clean input takes a time above 0, found {time}")
    share = mean_share(wrong, level=level)
    ends = (share.value / time, share.low / time, share.high / time)
    return Rate(Estimate(*ends, level, share.n, f"{share.method}, over {time:.4g} {unit} for each input"), unit)


def failure_rate(
    failures: Sequence[float] | Floats, spent: Sequence[float] | Floats, *, unit: str, level: float = 0.95
) -> Rate:
    """f_adv = (1 - adversarial accuracy) / mean time spent: one entry of both for each sample.

    A ratio of two sums; its standard error is that of the linearised ratio over the samples (Cochran 1977, 6.13), the
    interval of its logarithm a t one. Without any failure, it ends at 3.7 failures (for 95 %) over all that was spent,
    as that of a Poisson count.
    """
    hits, time = np.asarray(failures, dtype=np.float64), np.asarray(spent, dtype=np.float64)
    _check_rows(hits, time)
    n, total = len(hits), float(time.sum())
    value = float(hits.sum()) / total
    if value == 0:
        most = -math.log((1 - level) / 2) / total
        return Rate(Estimate(0.0, 0.0, most, level, n, "exact Poisson interval of no failure"), unit)
    error = float(np.std(rate_influence(hits, time), ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    width = float(t_quantile(n, level)) * error / value if n > 1 else math.inf
    low, high = value * math.exp(-width), value * math.exp(min(width, 700.0)) if math.isfinite(width) else math.inf
    return Rate(Estimate(value, low, high, level, n, "ratio over samples, linearised"), unit)


def rate_influence(failures: Floats, spent: Floats) -> Floats:
    """Influence of each sample on the ratio: (failures - r spent) / mean spent."""
    rate = failures.sum() / spent.sum()
    return np.asarray((failures - rate * spent) / spent.mean())


def cost_ratio(
    train_seconds_per_sample: float,
    fit: SurvivalFit,
    *,
    at: Mapping[str, Any] | None = None,
    until: float | None = None,
    extrapolated: bool = False,
    seconds_per_unit: float = 1.0,
) -> Estimate:
    """Meyers et al., Eq. 8: training seconds for each training sample, over the mean time E[T] until a sample breaks.

    Above 1, breaking a sample is cheaper than training on one was. The mean is restricted to `until`, by default the
    longest duration in the rows: E[min(T, until)]. With `extrapolated`, it is that of the fitted law, and the method
    says so. `at` is as for `SurvivalFit.mean`. `seconds_per_unit` turns the unit of the durations, a forward pass say,
    into seconds; it is taken as known. Total training time over E[T] is another number: `total_cost_ratio`.
    """
    _check_positive("train_seconds_per_sample", train_seconds_per_sample)
    _check_positive("seconds_per_unit", seconds_per_unit)
    if extrapolated and until is not None:
        raise RiskError(f"found until = {until:g} and `extrapolated`; choose one")
    mean = fit.mean(at=at) if extrapolated else fit.mean(at=at, until=fit.longest if until is None else until)
    return over_mean(train_seconds_per_sample, mean, seconds_per_unit=seconds_per_unit)


def total_cost_ratio(train_seconds: float, fit: SurvivalFit, **asked: Any) -> Estimate:
    """Total training time over E[T]: the number of samples that break while the model is trained once."""
    return cost_ratio(train_seconds, fit, **asked)


def over_mean(seconds: float, mean: Estimate, *, seconds_per_unit: float = 1.0) -> Estimate:
    """Seconds over a mean time, which exchanges the ends of the interval."""

    def ratio(time: float) -> float:
        return math.inf if time == 0 else seconds / (time * seconds_per_unit)

    method = f"{seconds:.4g} s over the {mean.method}"
    return Estimate(ratio(mean.value), ratio(mean.high), ratio(mean.low), mean.level, mean.n, method)


def mean_of(estimates: Sequence[Estimate], *, of: str = "estimates") -> Estimate:
    """Mean of several estimates from one fit, with mean limits, as their errors are dependent."""
    if not estimates:
        raise RiskError("no estimate to take the mean of")
    value, low, high = (float(np.mean([getattr(one, end) for one in estimates])) for end in ("value", "low", "high"))
    first = estimates[0]
    over = "" if len(estimates) == 1 else f"mean over {len(estimates)} {of}; each: "
    return Estimate(value, low, high, first.level, first.n, f"{over}{first.method}")


def scaled(estimate: Estimate, factor: float, method: str) -> Estimate:
    """An estimate in another unit."""
    value, low, high = (end * factor for end in (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, estimate.level, estimate.n, method)


def broken(
    ratio: Estimate,
    factor: float = BROKEN_FACTOR,
    *,
    extrapolated: Estimate | None = None,
    censored: bool = False,
) -> CostVerdict:
    """Whether breaking is cheaper than training by that factor; undecided where an interval holds it.

    A mean up to a limit is at most E[T], so `ratio` is at least what it would be without a limit: below the factor it
    decides, above it the `extrapolated` one, where given, must be, too. Else a model that no attack breaks would be
    called broken because attacks gave up early. So with `censored` rows, and no law to follow beyond the limit, a ratio
    above the factor decides nothing.

    One order of magnitude by default: seconds on one machine vary by less than that, and the paper calls a model broken
    where orders of magnitude lie between the two.
    """
    _check_positive("factor", factor)
    if ratio.high < factor:
        return "not broken"
    if extrapolated is None and censored:
        return "undecided"
    return (
        "broken" if min(ratio.low, ratio.low if extrapolated is None else extrapolated.low) >= factor else "undecided"
    )


def _check_rows(hits: Floats, time: Floats) -> None:
    if hits.shape != time.shape or hits.ndim != 1 or not len(hits):
        raise RiskError(f"failures and spent need one entry for each sample, found {hits.shape} and {time.shape}")
    if not (np.isfinite(hits).all() and np.isfinite(time).all() and (hits >= 0).all() and (time >= 0).all()):
        raise RiskError("failures and spent are finite and at least 0; found others")
    if not time.sum() > 0:
        raise RiskError("nothing was spent on any sample, so there is no rate")


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise RiskError(f"{name} is a number above 0, found {value}")
