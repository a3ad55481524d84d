"""Goodness-of-fit test of a fitted curve against monotone alternatives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.risk.evasion.bayesian import BayesianEvasion
from advrisk.risk.evasion.curve import EvasionCurve, Floats, values_of
from advrisk.risk.evasion.logistic import LogisticEvasion
from advrisk.risk.evasion.monotone import falling

_RESAMPLES = 399
_CURVES = 2048  # curves of the fit's shape to maximise the likelihood over
_MOST_SIZES = 256  # beyond, neighbouring sizes are pooled
_METHOD = "likelihood ratio to a monotone curve, posterior predictive"


@dataclass(frozen=True)
class ShapeTest:
    """Likelihood-ratio test of the shape that a fit assumes against any non-increasing curve."""

    n: int  # answers
    statistic: float  # log likelihood ratio of the best monotone curve to the best curve of the shape
    p_value: float
    method: str = _METHOD


def shape_test(curve: EvasionCurve) -> ShapeTest | None:
    """Test the shape of a fitted curve; None if it assumes no shape, or its answers are all equal.

    The best monotone curve is that of isotonic regression; the best curve of the fit's shape is the likeliest of many
    posterior draws. The p-value is posterior predictive: replicated answers to the same questions, each from a
    posterior draw, since chi-squared does not apply to a monotone alternative. With random effects, each replicate has
    new labellers and images. The same answers have the same p-value.
    """
    if not isinstance(curve, LogisticEvasion | BayesianEvasion) or len(set(curve.answers.undetected.tolist())) < 2:
        return None
    rng = np.random.default_rng(0)
    order = np.argsort(curve.answers.sizes, kind="stable")
    sizes, starts, total = _pools(curve.answers.sizes[order])
    chance = 0.5 if isinstance(curve, BayesianEvasion) and curve.forced_choice else 1.0
    shapes = chance * values_of(curve.draws(_CURVES, rng), sizes)
    by_answer = curve.answer_draws(_RESAMPLES, rng) if isinstance(curve, BayesianEvasion) else None
    if by_answer is None:
        drawn = rng.binomial(total.astype(np.int64), chance * values_of(curve.draws(_RESAMPLES, rng), sizes))
    else:
        drawn = np.add.reduceat(rng.random(by_answer.shape) < by_answer[:, order], starts, axis=1, dtype=np.int64)
    own = np.add.reduceat(curve.answers.undetected[order], starts, dtype=np.int64)
    gain = _gains(shapes, np.vstack([own, drawn]).astype(np.float64), total, chance)
    at_least = 1 + int((gain[1:] >= gain[0] - 1e-9).sum())
    return ShapeTest(curve.answers.n, float(gain[0]), at_least / (_RESAMPLES + 1))


def _pools(ordered: Floats) -> tuple[Floats, Any, Floats]:
    """Distinct sizes, or means of neighbours, with the first index and the number of their answers."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-1.0))
    if starts.size > _MOST_SIZES:
        starts = starts[np.arange(_MOST_SIZES) * starts.size // _MOST_SIZES]
    total = np.diff(starts, append=ordered.size).astype(np.float64)
    return np.add.reduceat(ordered, starts) / total, starts, total


def _gains(shapes: Floats, hits: Floats, total: Floats, most: float) -> Floats:
    """Log likelihood ratio of the best monotone curve to the best of the shapes, for each row of answers."""
    from scipy.special import xlogy

    p = np.clip(shapes, 1e-12, 1 - 1e-12)
    own = (np.log(p) @ hits.T + np.log1p(-p) @ (total - hits).T).max(axis=0)
    free = np.minimum([falling(row / total, total) for row in hits], most)
    return np.asarray((xlogy(hits, free) + xlogy(total - hits, 1 - free)).sum(axis=1) - own)
