"""Uncertainty of evasion curves of every kind: the band, and the size at which half goes undetected."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.evasion.curve import Curves, Evasion, EvasionCurve, Floats, checked_sizes, curves_of, values_of
from advrisk.risk.evasion.monotone import MonotoneCurve

_LEAST, _LARGEST = 1e-12, 1e12  # search range of the size at which half goes undetected
_HALVINGS = 50

Function = Callable[[Floats], Floats]


def curve_band(curve: EvasionCurve, sizes: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Pointwise interval of Psi at each size.

    Its limits are quantiles of the curves that represent the uncertainty, or of their bounds if they have any. The band
    of a curve without uncertainty is the curve.
    """
    array = checked_sizes(sizes, "sizes")
    tail = _tail(level)
    low, high = _drawn_bounds(curves_of(curve), array.ravel())
    middle = curve(array.ravel())
    band = np.minimum(np.quantile(low, tail, axis=0), middle), np.maximum(np.quantile(high, 1 - tail, axis=0), middle)
    return band[0].reshape(array.shape), band[1].reshape(array.shape)


def half_detected(curve: EvasionCurve, level: float = 0.95) -> Estimate | None:
    """Size at which half goes undetected; None if Psi stays above 1/2 or begins below it.

    A limit of 0 or inf means that the data do not exclude it.
    """
    tail = _tail(level)
    value = float(_crossings(lambda sizes: curve(sizes), 1)[0])
    if not 0 < value < np.inf:
        return None
    drawn = curves_of(curve)
    low, high = _drawn_crossings(drawn)
    lower = float(np.quantile(low, tail, method="lower"))
    upper = float(np.quantile(high, 1 - tail, method="higher"))
    answers = getattr(curve, "answers", None)
    n = 0 if answers is None else answers.n
    return Estimate(value, min(lower, value), max(upper, value), level, n, "draws" if len(drawn) > 1 else "known")


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    return (1 - level) / 2


def _drawn_bounds(drawn: Sequence[Evasion], sizes: Floats) -> tuple[Floats, Floats]:
    """Lower and upper bounds, (draws, sizes); they are equal unless the draws are defined at their knots only."""
    if not isinstance(drawn[0], MonotoneCurve):
        values = values_of(drawn, sizes)
        return values, values
    pairs = [curve.bounds(sizes) for curve in drawn if isinstance(curve, MonotoneCurve)]
    return np.stack([low for low, _ in pairs]), np.stack([high for _, high in pairs])


def _drawn_crossings(drawn: Sequence[Evasion]) -> tuple[Floats, Floats]:
    """The least and the largest size at which each curve may pass 1/2."""
    if isinstance(drawn, Curves):
        crossings = _crossings(lambda sizes: drawn.many(drawn.parameters, sizes[:, None])[:, 0], len(drawn))
        return crossings, crossings
    if isinstance(drawn[0], MonotoneCurve):
        pairs = [_knots_about_half(curve) for curve in drawn if isinstance(curve, MonotoneCurve)]
        return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])
    crossings = np.concatenate([_crossings(curve, 1) for curve in drawn])
    return crossings, crossings


def _knots_about_half(curve: MonotoneCurve) -> tuple[float, float]:
    """The last knot whose lower bound exceeds 1/2, or 0, and the first whose upper bound does not, or inf."""
    above, below = curve.knots[curve.low > 0.5], curve.knots[curve.high <= 0.5]
    return float(above[-1]) if above.size else 0.0, float(below[0]) if below.size else np.inf


def _crossings(function: Function, n: int) -> Floats:
    """Sizes at which n decreasing functions reach 1/2, by bisection on the log scale.

    0 if a function is at most 1/2 at the least size, inf if it exceeds 1/2 at the largest.
    """
    low, high = np.full(n, np.log(_LEAST)), np.full(n, np.log(_LARGEST))
    begins, ends = function(np.exp(low)) > 0.5, function(np.exp(high)) > 0.5
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = function(np.exp(middle)) > 0.5
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(ends, np.inf, np.where(begins, np.exp((low + high) / 2), 0.0))
