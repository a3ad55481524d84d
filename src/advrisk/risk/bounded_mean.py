"""Confidence limits of the mean of a bounded quantity that stay valid under skew and for rare, unobserved samples.

Gaffke (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"),
as for damage under a curve. The values get random weights, exponential and normalised. One additional, unobserved
sample has the highest possible value for the upper limit and the lowest for the lower one. The weighted mean exceeds t
exactly if

    Q = sum_i E_i (v_i - t) > 0,   E_i independent and exponential,

so nothing needs to be drawn: the tail of Q is Lugannani and Rice's (1980, "Saddle point approximation for the
distribution of the sum of independent random variables"), with K(s) = -sum_i log(1 - s c_i) for c_i = v_i - t. For
values 0 and 1 the limits equal Clopper and Pearson's up to a hundredth of their tail.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 100  # iterations at most; five are usual
_TOLERANCE = 1e-9  # of a limit
_FARTHEST = -40.0  # standard deviations; beyond, tails are 0
_MIDDLE = 1e-4  # so close to the mean, Lugannani and Rice's formula is 0/0


def mean_limits(values: Floats, lowest: float, highest: float, level: float) -> tuple[float, float]:
    """Lower and upper limit of the mean; `lowest` and `highest` bound the value of a sample."""
    tail = (1 - level) / 2
    return -_upper(-values, -lowest, tail), _upper(values, highest, tail)


def widened(
    values: Floats, lowest: float, highest: float, limits: tuple[float, float], level: float
) -> tuple[float, float]:
    """The wider of these limits and those of `mean_limits`, at each end separately.

    If every value is the lowest or the highest, the limits stay: those of a proportion are valid.
    """
    if np.isin(values, (lowest, highest)).all():
        return limits
    tail, (low, high) = (1 - level) / 2, limits
    different, times = np.unique(values, return_counts=True)
    counts = times.astype(np.float64)
    with_one_more = np.append(counts, 1.0)
    if exceeds_zero(low - np.append(different, lowest), with_one_more) > tail:
        low = min(low, -_upper(-different, -lowest, tail, counts))
    if exceeds_zero(np.append(different, highest) - high, with_one_more) > tail:
        high = max(high, _upper(different, highest, tail, counts))
    return low, high


def _upper(values: Floats, highest: float, tail: float, counts: Floats | None = None) -> float:
    """Value that the weighted mean exceeds with probability `tail`, rounded upwards."""
    from scipy.special import ndtri

    extended = np.append(values, highest)
    weights = np.ones(extended.size) if counts is None else np.append(counts, 1.0)
    mean, high = float(weights @ extended / weights.sum()), float(extended.max())
    if high - mean < _TOLERANCE:
        return high
    target = float(ndtri(tail))  # on this scale tails are nearly linear, and few steps suffice

    def excess(limit: float) -> float:
        return max(float(ndtri(exceeds_zero(extended - limit, weights))), _FARTHEST) - target

    spread = float(np.sqrt(weights @ (extended - mean) ** 2)) / float(weights.sum())
    return min(_root(excess, mean - target * spread, float(extended.min()), high) + _TOLERANCE, high)


def _root(function: Callable[[float], float], start: float, low: float, high: float) -> float:
    """Root of a decreasing function by the secant method, with bisection where a step leaves the bracket."""
    at = min(max(start, low), high)
    last = (at, math.nan)
    for _ in range(_STEPS):
        here = function(at)
        low, high = (at, high) if here > 0 else (low, at)
        slope = (here - last[1]) / (at - last[0]) if at != last[0] else math.nan
        new = at - here / slope if slope < 0 else at + math.copysign(0.1 * abs(high - low), here)
        new = new if low < new < high else (low + high) / 2
        if abs(new - at) < _TOLERANCE:
            return new
        last, at = (at, here), new
    return at


def exceeds_zero(factors: Floats, counts: Floats | None = None) -> float:
    """P(sum_i E_i c_i > 0) for independent exponential E_i; `counts` repeats each factor."""
    from scipy.special import ndtr

    if factors.max() <= 0 or factors.min() >= 0:
        return float(factors.max() > 0)
    weights = np.ones(factors.size) if counts is None else counts
    at = _saddlepoint(factors, weights)
    ratio = factors / (1 - at * factors)
    second = float(weights @ ratio**2)
    root = math.copysign(math.sqrt(max(2 * float(weights @ np.log1p(-at * factors)), 0.0)), at)
    if abs(root) < _MIDDLE:
        return 0.5 - 2 * float(weights @ ratio**3) / (6 * math.sqrt(2 * math.pi) * second * math.sqrt(second))
    density = math.exp(-root * root / 2) / math.sqrt(2 * math.pi)
    return float(ndtr(-root)) + density * (1 / (at * math.sqrt(second)) - 1 / root)


def _saddlepoint(factors: Floats, weights: Floats) -> float:
    """Root of K' by Newton's method, with bisection where a step leaves the bracket."""
    low, high = 1 / float(factors.min()), 1 / float(factors.max())
    at = 0.0
    for _ in range(_STEPS):
        ratio = factors / (1 - at * factors)
        slope = float(weights @ ratio)
        low, high = (low, at) if slope > 0 else (at, high)
        step = at - slope / float(weights @ ratio**2)
        step = step if low < step < high else (low + high) / 2
        if abs(step - at) <= 1e-7 * abs(step):
            return step
        at = step
    return at
