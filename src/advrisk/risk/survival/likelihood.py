"""The log-likelihood of log T = x beta + sigma W with its gradient and Hessian, for exact, censored and interval rows.

With eta = x beta, u = log sigma = +-(v gamma) and z = (ln t - eta)/sigma, a row adds

    event at t               log f(z) - u - ln t
    censored at t            log S(z)
    event in (lower, t]      log(S(z of lower) - S(z of t))

f and S are those of the family's W. All sums are over rows, so the order of rows matters to rounding only.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.survival.families import Family, Slopes
from advrisk.risk.survival.frames import Floats

_BLOCK = 8192
_NARROW = 1e-6  # ln t - ln lower, below which the density in the middle approximates the interval
_LONGEST = 50.0  # -log S of a row; beyond, one row would dominate


@dataclass(frozen=True, eq=False)
class Rows:
    """Times in the order of the likelihood: exact events, then censored rows, then intervals."""

    log_t: Floats
    log_lower: Floats  # of the intervals; -inf where the event may have come at any time before
    constant: Floats  # of the exact events: -ln t, or the log of a narrow interval's width
    n_exact: int
    n_censored: int

    @property
    def exact(self) -> slice:
        return slice(0, self.n_exact)

    @property
    def censored(self) -> slice:
        return slice(self.n_exact, self.n_exact + self.n_censored)

    @property
    def intervals(self) -> slice:
        return slice(self.n_exact + self.n_censored, len(self.log_t))


def sorted_rows(
    duration: Floats, event: Floats, lower: Floats | None, first: NDArray[np.intp] | None = None
) -> tuple[Rows, NDArray[np.intp]]:
    """The rows by kind, and the order that puts a column of the frame beside them; within a kind as in `first`."""
    happened = event > 0
    log_t = np.log(duration)
    log_lower = np.full_like(log_t, -np.inf)
    if lower is not None:
        np.log(lower, out=log_lower, where=happened & (lower > 0))
    width = log_t - log_lower
    exact = happened & (width < _NARROW) if lower is not None else happened
    constant = -log_t
    if lower is not None:
        narrow = exact & (width > 0)
        constant[narrow] = np.log(width[narrow])
        log_t = np.where(exact, (log_t + np.where(exact, log_lower, 0.0)) / 2, log_t)
    kind = np.where(exact, 0, np.where(happened, 2, 1)).astype(np.int8)
    order = np.argsort(kind, kind="stable") if first is None else first[np.argsort(kind[first], kind="stable")]
    n_exact, n_censored = int(exact.sum()), int((~happened).sum())
    late = order[n_exact + n_censored :]
    return Rows(log_t[order], log_lower[late], constant[order[:n_exact]], n_exact, n_censored), order


class Terms(NamedTuple):
    """Each row's log-likelihood, and its derivatives in eta and u."""

    value: Floats
    eta: Floats
    u: Floats
    eta_eta: Floats
    eta_u: Floats
    u_u: Floats


def row_terms(family: Family, rows: Rows, eta: Floats, u: Floats) -> Terms:
    """Row by row."""
    out = Terms(*np.empty((6, len(eta))))
    rate = np.exp(-u)
    z = (rows.log_t - eta) * rate
    for part, law in ((rows.exact, family.log_density), (rows.censored, family.log_survival)):
        if part.stop > part.start:
            _fill(out, part, law(z[part]), z[part], rate[part])
    out.value[rows.exact] += rows.constant - u[rows.exact]
    out.u[rows.exact] -= 1
    if rows.intervals.stop > rows.intervals.start:
        part = rows.intervals
        _fill_intervals(out, part, family, (rows.log_lower - eta[part]) * rate[part], z[part], rate[part])
    return out


def _fill(out: Terms, part: slice, law: Slopes, z: Floats, rate: Floats) -> None:
    """By the chain rule: dz/deta = -1/sigma and dz/du = -z."""
    out.value[part] = law.value
    out.eta[part] = -law.first * rate
    out.u[part] = -law.first * z
    out.eta_eta[part] = law.second * rate**2
    out.eta_u[part] = (law.second * z + law.first) * rate
    out.u_u[part] = (law.second * z + law.first) * z


def _fill_intervals(out: Terms, part: slice, family: Family, z_low: Floats, z: Floats, rate: Floats) -> None:
    """With D = S(z_low) - S(z); differences of the two ends are taken before they are squared, against cancellation."""
    inside = log_difference(family, z_low, z)
    density, low_density = family.log_density(z), family.log_density(np.where(np.isfinite(z_low), z_low, 0.0))
    high = np.exp(density.value - inside)
    low = np.where(np.isfinite(z_low), np.exp(low_density.value - inside), 0.0)
    z_low = np.where(np.isfinite(z_low), z_low, 0.0)
    m0, m1 = high - low, high * z - low * z_low
    slope, low_slope = high * density.first, low * low_density.first
    s0, s1, s2 = slope - low_slope, slope * z - low_slope * z_low, slope * z**2 - low_slope * z_low**2
    out.value[part] = inside
    out.eta[part] = -m0 * rate
    out.u[part] = -m1
    out.eta_eta[part] = (s0 - m0**2) * rate**2
    out.eta_u[part] = (s1 - m0 * m1 + m0) * rate
    out.u_u[part] = s2 - m1**2 + m1


def log_difference(family: Family, z_low: Floats, z: Floats) -> Floats:
    """log(S(z_low) - S(z)) from the tail in which both are small, so that nothing cancels."""
    left = z <= 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        failure, failure_low = family.log_failure(z), family.log_failure(z_low)
        by_failure = failure + np.log(-np.expm1(failure_low - failure))
        survival, survival_low = family.log_survival(z).value, family.log_survival(z_low).value
        by_survival = survival_low + np.log(-np.expm1(survival - survival_low))
    return np.asarray(np.where(left, by_failure, by_survival))


class Likelihood(NamedTuple):
    """The sum over rows at one set of coefficients."""

    value: float
    gradient: Floats
    hessian: Floats


@dataclass(frozen=True, eq=False)
class LawLikelihood:
    """A family, the rows, and the two design matrices, each with a first column of ones, stored column by column."""

    family: Family
    rows: Rows
    x: Floats  # for the scale: eta = x beta
    v: Floats  # for the shape: log sigma = sign * v gamma

    @property
    def n_scale(self) -> int:
        return int(self.x.shape[1])

    @property
    def longest_step(self) -> Floats:
        """Step limits of Newton's method: log sigma moves slowly, as the likelihood is flat for a large sigma."""
        return np.repeat([20.0, 1.0], [self.n_scale, self.v.shape[1]])

    def predictors(self, theta: Floats) -> tuple[Floats, Floats]:
        """eta and u of every row."""
        return predictors(self.family, theta, self.x, self.v)

    def terms(self, theta: Floats) -> Terms:
        """Row by row, at these coefficients."""
        return row_terms(self.family, self.rows, *self.predictors(theta))

    def at(self, theta: Floats) -> Likelihood:
        """The log-likelihood with its gradient and Hessian in theta = (beta, gamma)."""
        terms = self.terms(theta)
        sign = self.family.shape_sign
        gradient = np.concatenate([terms.eta @ self.x, sign * (terms.u @ self.v)])
        k = self.n_scale
        hessian = np.empty((len(theta), len(theta)))
        hessian[:k, :k] = _weighted(self.x, terms.eta_eta, self.x)
        hessian[:k, k:] = sign * _weighted(self.x, terms.eta_u, self.v)
        hessian[k:, :k] = hessian[:k, k:].T
        hessian[k:, k:] = _weighted(self.v, terms.u_u, self.v)
        return Likelihood(float(terms.value.sum()), gradient, hessian)

    def scores(self, theta: Floats) -> Floats:
        """Each row's gradient, (rows, coefficients)."""
        terms = self.terms(theta)
        return np.hstack([self.x * terms.eta[:, None], self.family.shape_sign * self.v * terms.u[:, None]])


def _weighted(left: Floats, weights: Floats, right: Floats) -> Floats:
    """left' diag(weights) right, a block of rows at a time, so that it is done in the processor's cache."""
    if right.shape[1] == 1:
        return np.asarray(left.T @ (weights * right[:, 0]))[:, None]
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(weights), _BLOCK):
        rows = slice(start, start + _BLOCK)
        total += (left[rows].T * weights[rows]) @ right[rows]
    return total


def predictors(family: Family, theta: Floats, x: Floats, v: Floats) -> tuple[Floats, Floats]:
    """eta = x beta and u = log sigma."""
    k = x.shape[1]
    return x @ theta[:k], family.shape_sign * (v @ theta[k:])


def cure_p_value(model: LawLikelihood, theta: Floats, clusters: NDArray[np.intp] | None) -> float:
    """One-sided p-value: small if more rows survive, and for longer, than a law under which all fail allows."""
    from scipy.special import ndtr

    eta, u = model.predictors(theta)
    censored = model.rows.censored
    z = (model.rows.log_t[censored] - eta[censored]) * np.exp(-u[censored])
    each = np.full(len(eta), -1.0)
    each[censored] = np.expm1(np.minimum(-model.family.log_survival(z).value, _LONGEST))
    scores = model.scores(theta)
    left = each - scores @ np.linalg.lstsq(scores.T @ scores, scores.T @ each, rcond=None)[0]
    by_cluster = left if clusters is None else np.bincount(clusters, weights=left)
    spread = float(np.sqrt(by_cluster @ by_cluster))
    return float(ndtr(-each.sum() / spread)) if spread > 0 else 1.0
