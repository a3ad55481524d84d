"""A proportion with its exact interval, a mean with its own, and shares whose spread is known otherwise."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate


def proportion(hits: int, n: int, *, level: float = 0.95) -> Estimate:
    """Clopper & Pearson (1934): hits/n with the interval that covers at least `level`, whatever the truth."""
    from scipy.special import betaincinv

    if not 0 <= hits <= n or n == 0:
        raise RiskError(f"a proportion needs 0 <= hits <= n and n > 0, found {hits} of {n}")
    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Estimate(hits / n, low, high, level, n, "Clopper-Pearson")


def share_interval(value: float, error: float, n: float, level: float) -> tuple[float, float]:
    """Korn and Graubard's interval of a value in [0, 1] with that standard error, made from n samples."""
    from scipy.special import betaincinv

    tail, size = (1 - level) / 2, float(share_size(value, error, n, level))
    successes = size * value
    low = float(betaincinv(successes, size - successes + 1, tail)) if value > 0 else 0.0
    high = float(betaincinv(successes + 1, size - successes, 1 - tail)) if value < 1 else 1.0
    return min(low, value), max(high, value)


def share_size(value: Any, error: Any, n: Any, level: float) -> NDArray[np.float64]:
    """How many samples would give a proportion of that value this standard error.

    Two guards, for spreads that few samples do not show: the standard error is taken to be at least 1/n (unless that
    makes the size less than n), and with no error at all the size is n.
    """
    from scipy.special import ndtri

    variance, n = np.asarray(value) * (1 - np.asarray(value)), np.asarray(n, dtype=np.float64)
    narrowing = (float(ndtri((1 + level) / 2)) / t_quantile(n, level)) ** 2  # the variance is itself an estimate
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.minimum(narrowing * variance / np.square(error), np.maximum(n, variance * n**2))
    return np.asarray(np.where(np.asarray(error) > 0, size, n), dtype=np.float64)


def half_width(error: float, n: float, level: float) -> float:
    """Half of a t interval of a difference of two values in [0, 1].

    The standard error is at least 1/n, the weight of one sample. With none at all the spread is unknown rather than
    zero: a kind of sample that n draws did not show may still have probability 1 - (alpha/2)^(1/n).
    """
    if error == 0:
        return 1 - float(((1 - level) / 2) ** (1 / n))
    return float(t_quantile(n, level)) * max(error, 1 / n)


def mean_interval(
    values: NDArray[np.float64], level: float, weights: NDArray[np.float64] | None = None
) -> tuple[float, float, float]:
    """Student (1908): the mean with its t interval; of one value alone, nothing is known of how far it may be off.

    With weights a_i that sum to 1, the variance is that of sum a_i x_i, and n = 1 / sum a_i^2. What is never negative,
    such as a distance, has no mean below 0 either.
    """
    share = np.ones(values.size) / values.size if weights is None else weights / weights.sum()
    n, mean = 1 / float(share @ share), float(share @ values)
    half = math.inf
    if n > 1 + 1e-9:
        half = float(t_quantile(n, level)) * math.sqrt(float(np.square(share * (values - mean)).sum()) * n / (n - 1))
    low = mean - half
    return mean, max(low, 0.0) if values.min() >= 0 else low, mean + half


def t_quantile(n: Any, level: float) -> Any:
    """Of a two-sided interval from n samples."""
    from scipy.special import stdtrit

    return stdtrit(np.asarray(n, dtype=np.float64) - 1, (1 + level) / 2)


def mean_estimate(values: Sequence[float], weights: Sequence[float] | None = None, *, level: float = 0.95) -> Estimate:
    """The mean with its t interval; samples of weight 0 do not count."""
    each = np.asarray(values, dtype=np.float64)
    if not each.size or not np.isfinite(each).all():
        raise RiskError(f"a mean needs finite values, at least one; found {len(each)}: {each[:5].tolist()}")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    weight = np.ones(each.size) if weights is None else np.asarray(weights, dtype=np.float64)
    counts = weight > 0
    if weight.shape != each.shape or not counts.any() or not np.isfinite(weight).all():
        raise RiskError(f"a mean needs a weight for each of {len(each)} values, some above 0; found {weight.tolist()}")
    interval = mean_interval(each[counts], level, None if weights is None else weight[counts])
    return Estimate(*interval, level, int(counts.sum()), "t interval of the mean")
