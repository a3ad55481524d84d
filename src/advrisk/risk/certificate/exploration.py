"""Guarantee of a GP-UCB search for the settings that it did not try (PROSAC, Theorem 4).

The theorem assumes that p, as a function of the attack's setting, has norm at most B in the Hilbert space of a kernel
with k(x, x) = 1, and that its noise is R-sub-Gaussian. It states the level zeta' = zeta - O(...) without the constants.
They come from the underlying theorem (Chowdhury & Gopalan, "On Kernelized Multi-armed Bandits", 2017, Theorem 3 and
Lemma 4), regularised by 1 + 2/T. If each of T rounds took the largest mu + beta sigma with

    beta >= B + R sqrt(2 (gamma_T + 1 + ln(1/delta))),

then with probability 1 - delta the largest p of all settings exceeds the mean over the rounds, and so their largest, by
at most

    gap = 4 beta sqrt((T + 2) gamma_T) / T.

gamma_T is the largest information gain of T points. On a finite set of settings, a greedy choice attains at least
1 - 1/e of it (Nemhauser, Wolsey & Fisher 1978; Srinivas et al. 2010), which gives an upper bound. If the largest p in
the search is at most zeta' = zeta - gap, all settings of the set are certified, with an error rate of at most
zeta + delta.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.core.plain import InJson
from advrisk.risk.certificate.counts import Floats, check_rate

Kernel = Literal["squared-exponential", "matern-5/2"]


@dataclass(frozen=True)
class SearchGuarantee:
    """The level for tried settings at which all settings of the searched set are certified at zeta."""

    zeta: float
    delta: float  # probability that the guarantee fails
    information_gain: float  # an upper bound of gamma_T
    beta: float  # factor of sigma that the theorem requires
    gap: float  # by how much p of an untried setting may exceed the largest p in the search
    beta_used: float

    in_json: ClassVar[InJson] = {"level": "level", "error": "error"}

    @property
    def level(self) -> float | None:
        """The paper's zeta', the threshold for the largest p in the search; None if there is no guarantee."""
        level = self.zeta - self.gap
        return level if level > 0 and self.beta_used >= self.beta else None

    @property
    def error(self) -> float | None:
        """Error rate of the claim about all settings; None if there is no guarantee."""
        return None if self.level is None else self.zeta + self.delta


def search_guarantee(
    zeta: float,
    *,
    rounds: int,
    settings: ArrayLike,
    kernel: Kernel,
    length_scale: ArrayLike,
    norm_bound: float,
    noise: float,
    delta: float,
    beta: float,
) -> SearchGuarantee:
    """zeta' of a search of T rounds over a finite set of settings (rows), under the user's assumptions.

    `norm_bound` is B and `noise` is R; neither can be estimated from the data. `beta` is the least factor of sigma that
    the search used; if a library takes the square root of its own beta, give the root.
    """
    check_rate("zeta", zeta)
    check_rate("delta", delta)
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise RiskError(f"rounds must be a whole number, at least 1, found {rounds!r}")
    for name, value in (("norm_bound", norm_bound), ("noise", noise), ("beta", beta)):
        if isinstance(value, bool) or not isinstance(value, Real) or not (math.isfinite(value) and value >= 0):
            raise RiskError(f"{name} must be a finite number, at least 0, found {value!r}")
    points = _scaled(settings, length_scale)
    gain = information_gain(points, rounds, kernel)
    needed = norm_bound + noise * math.sqrt(2 * (gain + 1 + math.log(1 / delta)))
    gap = 4 * needed * math.sqrt((rounds + 2) * gain) / rounds
    return SearchGuarantee(zeta, delta, gain, needed, gap, float(beta))


def information_gain(points: Floats, rounds: int, kernel: str) -> float:
    """Upper bound of 1/2 ln det(1 + K / (1 + 2/T)) over all choices of T of these points, with repetition."""
    noise = 1 + 2 / rounds
    variance, rows = np.ones(len(points)), np.empty((rounds, len(points)))
    gained = 0.0
    for t in range(rounds):
        best = int(variance.argmax())
        gained += 0.5 * math.log1p(variance[best] / noise)
        explained = rows[:t, best] @ rows[:t] if t else 0.0
        rows[t] = (correlation(points[best], points, kernel) - explained) / math.sqrt(variance[best] + noise)
        variance = np.maximum(variance - rows[t] ** 2, 0.0)
    return min(gained / (1 - 1 / math.e), 0.5 * rounds * math.log1p(1 / noise))


def correlation(one: Floats, points: Floats, kernel: str) -> Floats:
    """Kernel between a point and others, with distances in length scales."""
    distance = np.sqrt(np.square(points - one).sum(axis=1))
    if kernel == "squared-exponential":
        return np.asarray(np.exp(-(distance**2) / 2))
    if kernel == "matern-5/2":
        root = math.sqrt(5) * distance
        return np.asarray((1 + root + root**2 / 3) * np.exp(-root))
    raise RiskError(f"unknown kernel {kernel!r}; {did_you_mean(kernel, get_args(Kernel))}")


def _scaled(settings: ArrayLike, length_scale: ArrayLike) -> Floats:
    points, scale = _numbers(settings), _numbers(length_scale)
    if points.ndim != 2 or points.size == 0 or not np.isfinite(points).all():
        raise RiskError(f"settings must be a table of numbers, one row each, found {_abbreviated(settings)}")
    if not (scale > 0).all() or scale.shape not in ((), (1,), (points.shape[1],)):
        raise RiskError(f"length_scale must be a positive number, or one for each column, found {length_scale!r}")
    return np.asarray(points / scale)


def _abbreviated(values: ArrayLike) -> str:
    text = repr(values)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _numbers(values: ArrayLike) -> Floats:
    """Values as an array; nan if they are not numbers, which every caller refuses."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([math.nan])
