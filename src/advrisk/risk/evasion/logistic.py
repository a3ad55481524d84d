"""The logistic evasion curve by maximum likelihood.

Psi(s) = 1 / (1 + exp(-(a + b s))) with b <= 0. The code uses standardised sizes: a + b s = alpha - beta z.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.risk.evasion.answers import Answers, checked_answers
from advrisk.risk.evasion.curve import Curves, Evasion, Flags, Floats, checked_sizes, outside
from advrisk.risk.evasion.grid import Axis, Posterior, posterior

_STEPS = 100
_LONGEST_STEP = 4.0  # in alpha and beta, or as far as they are from 0
_CELLS = 61


@dataclass(frozen=True)
class LogisticCurve:
    """Psi(s) = 1 / (1 + exp(-(intercept + slope s))), 0 at inf."""

    intercept: float
    slope: float  # at most 0

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        finite = np.isfinite(array)
        values = np.zeros(array.shape)
        values[finite] = _many(np.array([[self.intercept, self.slope]]), array[finite])[0]
        return values


@dataclass(frozen=True, eq=False)
class LogisticEvasion:
    """A fitted logistic curve; its draws are those of the posterior under Jeffreys' prior."""

    answers: Answers
    curve: LogisticCurve
    separated: tuple[float, float] | None  # the largest undetected and the least detected size, if they do not overlap
    _centre: float = field(repr=False)
    _scale: float = field(repr=False)
    _posterior: Posterior = field(repr=False)  # of alpha and beta

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        return self.curve(sizes)

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        return self._curves(self._posterior.draws(n, rng))

    def nodes(self, n: int) -> Sequence[Evasion]:
        return self._curves(self._posterior.nodes(n)[0])

    def _curves(self, points: Floats) -> Curves:
        alpha, beta = points.T
        drawn = np.stack([alpha + beta * self._centre / self._scale, -beta / self._scale], axis=1)
        return Curves(drawn, _one, _many)

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        return outside(sizes, self.answers.sizes)


def fit_logistic(sizes: ArrayLike, undetected: ArrayLike) -> LogisticEvasion:
    """Psi(s) = 1 / (1 + exp(-(a + b s))), b <= 0, from a detector's answers by maximum likelihood.

    If no undetected size exceeds a detected one, the likelihood increases without bound in the slope, and the answers
    show only that detection begins between two sizes (`separated`). The estimate is then Firth's (1993), the mode of
    the posterior under Jeffreys' prior, which is finite. That posterior is the uncertainty in either case: it is
    proper, and unlike the normal approximation it is valid with few answers.
    """
    answers = checked_answers(sizes, undetected)
    distinct, total, hits = answers.counts()
    if distinct.size < 2:
        raise RiskError(
            f"all {answers.n} answers are of size {distinct[0]:g}; a logistic curve needs two sizes or more"
        )
    centre, scale = float(answers.sizes.mean()), float(answers.sizes.std())
    z = (distinct - centre) / scale
    between = _separated(answers)
    alpha, beta = _firth(z, total, hits) if between else maximum(z, total, hits[None])[0]
    return LogisticEvasion(
        answers=answers,
        curve=_curve(float(alpha), float(beta), centre, scale),
        separated=between,
        _centre=centre,
        _scale=scale,
        _posterior=_jeffreys_posterior(answers, centre, scale, about=(float(alpha), float(beta))),
    )


def maximum(z: Floats, total: Floats, hits: Floats, *, ridge: float = 0.0) -> Floats:
    """Maximum-likelihood (alpha, beta >= 0) by Newton's method, for each row of `hits` (rows, sizes).

    `ridge` is the weight of a penalty (alpha^2 + beta^2)/2, which keeps the maximum of separated answers finite. The
    likelihood is concave, so if its maximum has beta < 0, the best non-increasing curve is the flat one.
    """
    at = _climb(z, total, hits, ridge)
    rising = at[:, 1] < 0
    if rising.any():
        at[rising] = _climb(np.zeros_like(z), total, hits[rising], ridge)
    return at


def log_likelihood(at: Floats, z: Floats, total: Floats, hits: Floats) -> Floats:
    """Log likelihood of each row (alpha, beta) with its row of hits."""
    eta = at[:, :1] - at[:, 1:] * z
    return np.asarray((hits * eta - total * np.logaddexp(0, eta)).sum(axis=1))


def _climb(z: Floats, total: Floats, hits: Floats, ridge: float) -> Floats:
    at = np.zeros((len(hits), 2))
    for _ in range(_STEPS):
        step = _newton_step(at, z, total, hits, ridge)
        at = at + step
        if (np.abs(step) <= 1e-10 * (1 + np.abs(at))).all():
            break
    return at


def _newton_step(at: Floats, z: Floats, total: Floats, hits: Floats, ridge: float) -> Floats:
    """Newton step of limited length; gradient and Hessian are those of alpha - beta z."""
    from scipy.special import expit

    p = expit(at[:, :1] - at[:, 1:] * z)
    residual, weight = hits - total * p, total * p * (1 - p)
    g0, g1 = residual.sum(1) - ridge * at[:, 0], -(residual @ z) - ridge * at[:, 1]
    h00, h01, h11 = weight.sum(1) + ridge, -(weight @ z), weight @ z**2 + (ridge or 1e-12)  # z may be 0 everywhere
    determinant = np.maximum(h00 * h11 - h01**2, 1e-300)
    step = np.stack([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0], axis=1) / determinant[:, None]
    allowed = np.maximum(np.abs(at).max(axis=1, keepdims=True), _LONGEST_STEP)
    return np.asarray(step * np.minimum(1, allowed / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300)))


def _firth(z: Floats, total: Floats, hits: Floats) -> Floats:
    """Firth's estimate by Fisher scoring: the score of each answer is shifted by its leverage times 1/2 - p."""
    from scipy.special import expit

    design = np.stack([np.ones_like(z), -z], axis=1)
    at = np.zeros(2)
    for _ in range(_STEPS):
        p = expit(design @ at)
        weight = total * p * (1 - p)
        inverse = np.linalg.inv(design.T @ (weight[:, None] * design))
        leverage = weight * np.einsum("ki,ij,kj->k", design, inverse, design)
        step = inverse @ (design.T @ (hits - total * p + leverage * (0.5 - p)))
        at = at + step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    return at


def _jeffreys_posterior(answers: Answers, centre: float, scale: float, *, about: tuple[float, float]) -> Posterior:
    """Posterior under Jeffreys' prior, on a grid that starts eight standard errors around the estimate."""
    from scipy.special import expit, log_expit

    sizes, total, hits = answers.pooled_counts()
    z = (sizes - centre) / scale
    moments = np.stack([total, total * z, total * z**2], axis=1)

    def log_density(alpha: Floats, beta: Floats) -> Floats:
        eta = alpha[..., None] - beta[..., None] * z
        p = expit(eta)
        i0, i1, i2 = np.moveaxis((p * (1 - p)) @ moments, -1, 0)
        information = np.log(np.maximum(i0 * i2 - i1**2, 1e-300))
        return np.asarray(log_expit(-eta) @ total + eta @ hits + information / 2)

    p = expit(about[0] - about[1] * z)
    design = np.stack([np.ones_like(z), -z], axis=1)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ ((total * p * (1 - p))[:, None] * design))))
    low, high = about - 8 * errors, about + 8 * errors
    return posterior(log_density, [Axis(low[0], high[0], _CELLS), Axis(max(low[1], 0.0), high[1], _CELLS, least=0.0)])


def _separated(answers: Answers) -> tuple[float, float] | None:
    largest = float(answers.sizes[answers.undetected].max())
    least = float(answers.sizes[~answers.undetected].min())
    return (largest, least) if largest <= least else None


def _one(parameters: Floats) -> LogisticCurve:
    return LogisticCurve(*parameters.tolist())


def _many(parameters: Floats, sizes: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(parameters[:, :1] + parameters[:, 1:] * sizes))


def _curve(alpha: float, beta: float, centre: float, scale: float) -> LogisticCurve:
    return LogisticCurve(float(alpha + beta * centre / scale), float(-beta / scale))
