"""Limits of the mean of a bounded quantity that hold under skew, and for rare samples that nobody saw yet.

Gaffke (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"),
as for damage under a curve: the values get random weights, exponential and normalised, and one more sample, which was
not seen, the highest value there may be for the upper limit and the lowest for the lower one. The weighted mean exceeds
t exactly if

    Q = sum_i E_i (v_i - t) > 0,   E_i independent and exponential,

so that nothing needs to be drawn: the tail of Q is Lugannani and Rice's (1980, "Saddle point approximation for the
distribution of the sum of independent random variables"), with K(s) = -sum_i log(1 - s c_i) for c_i = v_i - t. For
values 0 and 1 the limits are Clopper and Pearson's but for a hundredth of their tail.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 100  # of Newton's method; five are usual
_EXACT = 1e-9  # to which a limit is found
_FARTHEST = -40.0  # standard deviations; beyond, tails are 0
_MIDDLE = 1e-4  # so near to its mean Lugannani and Rice's formula is 0/0


def mean_limits(values: Floats, lowest: float, highest: float, level: float) -> tuple[float, float]:
    """The lower and the upper limit of the mean; `lowest` and `highest` bound what a sample may be."""
    tail = (1 - level) / 2
    return -_upper(-values, -lowest, tail), _upper(values, highest, tail)


def widened(
    values: Floats, lowest: float, highest: float, limits: tuple[float, float], level: float
) -> tuple[float, float]:
    """These limits, or those of `mean_limits` where these are wider: at either end by itself.

    Of values that are the lowest or the highest there is nothing to widen: limits of a proportion hold for them.
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
    """The value that the weighted mean exceeds with probability `tail`, rounded upwards."""
    from scipy.special import ndtri

    every = np.append(values, highest)
    weights = np.ones(every.size) if counts is None else np.append(counts, 1.0)
    mean, high = float(weights @ every / weights.sum()), float(every.max())
    if high - mean < _EXACT:
        return high
    wanted = float(ndtri(tail))  # on this scale tails fall nearly in a line, and few steps find the limit

    def beyond(limit: float) -> float:
        return max(float(ndtri(exceeds_zero(every - limit, weights))), _FARTHEST) - wanted

    spread = float(np.sqrt(weights @ (every - mean) ** 2)) / float(weights.sum())
    return min(_fallen(beyond, mean - wanted * spread, float(every.min()), high) + _EXACT, high)


def _fallen(function: Callable[[float], float], start: float, low: float, high: float) -> float:
    """Where a function that falls is 0, from a start near it: by the secant, and halving where that leaves the ends."""
    at = min(max(start, low), high)
    last = (at, math.nan)
    for _ in range(_STEPS):
        here = function(at)
        low, high = (at, high) if here > 0 else (low, at)
        slope = (here - last[1]) / (at - last[0]) if at != last[0] else math.nan
        new = at - here / slope if slope < 0 else at + math.copysign(0.1 * abs(high - low), here)
        new = new if low < new < high else (low + high) / 2
        if abs(new - at) < _EXACT:
            return new
        last, at = (at, here), new
    return at


def exceeds_zero(factors: Floats, counts: Floats | None = None) -> float:
    """P(sum_i E_i c_i > 0) for independent exponential E_i; each factor as often as `counts` says."""
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
    """Where K' is 0: Newton's method, and halving where it leaves what is known to hold the solution."""
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
