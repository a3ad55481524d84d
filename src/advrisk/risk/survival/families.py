"""The three laws of log T = x beta + sigma W, each by its standardised W: values and slopes in z, safe in both tails.

    weibull      S(z) = exp(-exp(z))    T: S(t) = exp(-(t/lambda)^rho),  lambda = exp(x beta), rho = 1/sigma
    lognormal    S(z) = 1 - Phi(z)      T: S(t) = 1 - Phi((ln t - mu)/sigma),  mu = x beta
    loglogistic  S(z) = 1/(1 + exp(z))  T: S(t) = 1/(1 + (t/a)^b),  a = exp(x beta), b = 1/sigma

with z = (ln t - x beta)/sigma. All three densities of W are log-concave.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.risk.survival.frames import Floats

FamilyName = Literal["weibull", "lognormal", "loglogistic"]
FAMILIES: tuple[FamilyName, ...] = ("weibull", "lognormal", "loglogistic")

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_TERMS = 24  # the error is below 5.8^-24


class Slopes(NamedTuple):
    """A function of z with its first and second derivative."""

    value: Floats
    first: Floats
    second: Floats


class Family(Protocol):
    """Functions of W for fits and predictions."""

    name: FamilyName
    shape_sign: int  # the shape coefficients are shape_sign x log sigma, as lifelines has them
    log_std: float  # the log of W's standard deviation
    centre: float  # W's mean

    def log_density(self, z: Floats) -> Slopes: ...
    def log_survival(self, z: Floats) -> Slopes: ...
    def log_failure(self, z: Floats) -> Floats: ...
    def quantile(self, survival: Floats) -> Floats:
        """The z at which S(z) has this value."""
        ...

    def log_mean(self, sigma: Floats) -> tuple[Floats, Floats]:
        """log E[exp(sigma W)] and its slope in log sigma; inf where there is no mean."""
        ...

    def restricted(self, sigma: Floats, z: Floats) -> Floats:
        """The integral of S up to t, over t, where t has this z: between 0 and 1."""
        ...


class Weibull:
    """Weibull: W is the log of an exponential variable (minimum extreme value)."""

    name: FamilyName = "weibull"
    shape_sign = -1
    log_std = math.log(math.pi / math.sqrt(6))
    centre = -float(np.euler_gamma)

    def log_density(self, z: Floats) -> Slopes:
        hazard = np.exp(z)
        return Slopes(z - hazard, 1 - hazard, -hazard)

    def log_survival(self, z: Floats) -> Slopes:
        hazard = -np.exp(z)
        return Slopes(hazard, hazard, hazard)

    def log_failure(self, z: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-np.expm1(-np.exp(z))))

    def quantile(self, survival: Floats) -> Floats:
        return np.asarray(np.log(-np.log(survival)))

    def log_mean(self, sigma: Floats) -> tuple[Floats, Floats]:
        from scipy.special import digamma, gammaln

        return np.asarray(gammaln(1 + sigma)), np.asarray(sigma * digamma(1 + sigma))

    def restricted(self, sigma: Floats, z: Floats) -> Floats:
        """1F1(sigma; 1 + sigma; -x) with x = exp(z): the incomplete gamma function, where it does not underflow."""
        from scipy.special import gammainc, gammaln, hyp1f1

        x = np.exp(np.minimum(z, 700.0))
        far = x > 1 + sigma
        near = np.exp(-x) * hyp1f1(1.0, 1 + sigma, np.where(far, 0.0, x))
        with np.errstate(divide="ignore"):
            beyond = np.exp(gammaln(1 + sigma) - sigma * z + np.log(gammainc(sigma, x)))
        return np.asarray(np.where(far, beyond, near))


class LogNormal:
    """Log-normal: W is standard normal."""

    name: FamilyName = "lognormal"
    shape_sign = 1
    log_std = 0.0
    centre = 0.0

    def log_density(self, z: Floats) -> Slopes:
        return Slopes(-0.5 * z * z - _LOG_ROOT_2PI, -z, np.full_like(z, -1.0))

    def log_survival(self, z: Floats) -> Slopes:
        from scipy.special import log_ndtr

        value = log_ndtr(-z)
        hazard = np.exp(-0.5 * z * z - _LOG_ROOT_2PI - value)
        return Slopes(value, -hazard, -hazard * np.maximum(hazard - z, 0.0))

    def log_failure(self, z: Floats) -> Floats:
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(z))

    def quantile(self, survival: Floats) -> Floats:
        from scipy.special import ndtri

        return np.asarray(-ndtri(survival))

    def log_mean(self, sigma: Floats) -> tuple[Floats, Floats]:
        return sigma**2 / 2, sigma**2

    def restricted(self, sigma: Floats, z: Floats) -> Floats:
        from scipy.special import log_ndtr

        return np.asarray(np.exp(sigma**2 / 2 - sigma * z + log_ndtr(z - sigma)) + np.exp(log_ndtr(-z)))


class LogLogistic:
    """Log-logistic: W is standard logistic."""

    name: FamilyName = "loglogistic"
    shape_sign = -1
    log_std = math.log(math.pi / math.sqrt(3))
    centre = 0.0

    def log_density(self, z: Floats) -> Slopes:
        log_left, p = self._tails(z)
        return Slopes(z + 2 * log_left, 1 - 2 * p, -2 * p * (1 - p))

    def log_survival(self, z: Floats) -> Slopes:
        log_left, p = self._tails(z)
        return Slopes(log_left, -p, -p * (1 - p))

    def log_failure(self, z: Floats) -> Floats:
        from scipy.special import log_expit

        return np.asarray(log_expit(z))

    def _tails(self, z: Floats) -> tuple[Floats, Floats]:
        """log(1 - p) and p = 1/(1 + exp(-z)), from one exponential that is at most 1."""
        small = np.exp(-np.abs(z))
        larger = 1 / (1 + small)
        return np.log(larger) - np.maximum(z, 0.0), np.where(z >= 0, larger, small * larger)

    def quantile(self, survival: Floats) -> Floats:
        return np.asarray(np.log1p(-survival) - np.log(survival))

    def log_mean(self, sigma: Floats) -> tuple[Floats, Floats]:
        """pi sigma / sin(pi sigma) for sigma < 1, otherwise infinite."""
        angle = math.pi * np.where(sigma < 1, sigma, 0.5)
        with np.errstate(divide="ignore"):
            value, slope = np.log(angle / np.sin(angle)), 1 - angle / np.tan(angle)
        return np.where(sigma < 1, value, np.inf), np.where(sigma < 1, slope, np.inf)

    def restricted(self, sigma: Floats, z: Floats) -> Floats:
        """2F1(1, sigma; 1 + sigma; -exp(z)), as sigma times the integral of exp(-sigma q)/(1 + exp(z - q)) over q > 0.

        On either side of q = z, the fraction is a geometric series; integrated term by term, it alternates, and its
        terms are moments of a positive measure: twenty-odd of them give all digits (Cohen, Villegas and Zagier, 2000).
        """
        below, above = np.minimum(z, 0.0), np.maximum(z, 0.0)
        beyond = _alternating(lambda k: np.exp(k * below) * sigma / (sigma + k))
        return np.asarray(np.exp(-sigma * above) * beyond + _alternating(lambda k: _between(sigma, above, k + 1)))


def _between(sigma: Floats, z: Floats, k: int) -> Floats:
    """sigma times the integral of exp(-sigma q - k (z - q)) over 0 < q < z."""
    from scipy.special import exprel

    return np.asarray(sigma * z * np.exp(-np.minimum(sigma, k) * z) * exprel(-np.abs(k - sigma) * z))


def _alternating(term: Callable[[int], Floats]) -> Floats:
    """The sum of (-1)^k term(k) over all k >= 0, by algorithm 1 of Cohen, Villegas and Zagier."""
    root = (3 + math.sqrt(8)) ** _TERMS
    whole = (root + 1 / root) / 2
    b, c = -1.0, -whole
    total: Floats = np.zeros(1)
    for k in range(_TERMS):
        c = b - c
        total = total + c * term(k)
        b *= (k + _TERMS) * (k - _TERMS) / ((k + 0.5) * (k + 1))
    return total / whole


_ALL: dict[str, Family] = {one.name: one for one in (Weibull(), LogNormal(), LogLogistic())}


def family_named(name: str) -> Family:
    """The family of that name."""
    if name not in _ALL:
        raise RiskError(f"no family of survival times is called {name!r}; {did_you_mean(name, _ALL)}")
    return _ALL[name]
