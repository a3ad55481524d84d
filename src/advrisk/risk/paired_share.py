"""Difference of two shares on the same samples, from the discordant counts of two models.

Of n samples, `up` have the property with the first model only, `down` with the second only; D = P(up) - P(down).

Gaffke (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"),
as for damage: the differences -1, 0 and 1 get random weights, exponential and normalised. One additional, unobserved
sample has a difference of 1 for the upper limit and of -1 for the lower. Equal values are pooled, so the weights have a
Dirichlet distribution and nothing needs to be drawn. For the upper limit

    T = X - Y = S (2 B - 1),   (X, Y, Z) ~ Dirichlet(up + 1, down, n - up - down),
    S ~ Beta(up + 1 + down, n - up - down),   B ~ Beta(up + 1, down), independent.

The limit is the quantile of T, and P(T >= margin) is the p-value of "D is margin or more". With `down` = 0 that is
Clopper and Pearson's limit; without a discordant pair it is 1 - tail^(1/n), and never 0. Enumeration of all tables
(`python -m bench paired_share`) finds no truth at which one side misses more often than the level allows. Tango's score
interval (1998), the usual choice, misses up to twice as often.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate

Floats = NDArray[np.float64]

_POINTS = 128  # quadrature points over the distribution of B
_HALVINGS = 40


def share_difference(up: int, down: int, n: int, *, level: float = 0.95, unknown: int = 0) -> Estimate:
    """(up - down) / n with its interval.

    `unknown` additional samples have no verdict: all count as `up` for the upper limit, as `down` for the lower one.
    """
    _check(up, down, n, level)
    if unknown < 0:
        raise RiskError(f"unknown must be a count of samples, at least 0, found {unknown}")
    tail = (1 - level) / 2
    high = _upper(up + unknown, down, n + unknown, tail)
    low = -_upper(down + unknown, up, n + unknown, tail)
    value = (up - down) / n
    return Estimate(value, min(low, value), max(high, value), level, n, "paired shares, Gaffke")


def at_least(up: int, down: int, n: int, margin: float) -> float:
    """One-sided p-value of D >= margin: small if the data show that the difference is less."""
    _check(up, down, n, 0.5)
    return _tail(margin, up + 1, down, n - up - down)


def _check(up: int, down: int, n: int, level: float) -> None:
    if min(up, down) < 0 or up + down > n or n == 0:
        raise RiskError(f"shares of {n} samples cannot differ {up} times one way and {down} times the other")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")


def _upper(up: int, down: int, n: int, tail: float) -> float:
    """Value that T exceeds with probability `tail`, rounded upwards."""
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(middle, up + 1, down, n - up - down) > tail else (low, middle)
    return high


def _tail(limit: float, first: int, second: int, third: int) -> float:
    """P(T >= limit), (X, Y, Z) ~ Dirichlet(first, second, third); first > 0.

    T reaches a limit above 0 if B > (1 + limit) / 2 and S is large enough, and falls below a negative one if
    B < (1 + limit) / 2 and S is large enough. The integrand is smooth there, so Gauss-Legendre quadrature suffices.
    """
    from scipy.special import betaincinv

    edge = _cdf((1 + limit) / 2, first, second)
    low, high = (edge, 1.0) if limit > 0 else (0.0, edge)
    points, weights = _quadrature()
    probability = low + (high - low) * points
    lean = 2 * np.asarray(betaincinv(first, second, probability)) - 1 if second else np.ones(points.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.clip(np.nan_to_num(limit / lean, nan=0.0, posinf=1.0, neginf=1.0), 0.0, 1.0)
    beyond = (high - low) * float(weights @ (1 - _cdf(reach, first + second, third)))
    return min(1.0, float(beyond)) if limit > 0 else max(0.0, 1 - float(beyond))


def _cdf(x: ArrayLike, a: int, b: int) -> Any:
    """Distribution function of Beta(a, b), which is concentrated at 1 if b = 0."""
    from scipy.special import betainc

    return betainc(a, b, x) if b else np.asarray(x, dtype=np.float64) >= 1


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Gauss-Legendre points in (0, 1), and weights."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    return (points + 1) / 2, weights / 2
