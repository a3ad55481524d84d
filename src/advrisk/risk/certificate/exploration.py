"""What a search by GP-UCB promises about the settings that it did not try (PROSAC, Theorem 4), if anything.

The theorem takes p, as a function of the attack's setting, for a function of norm at most B in the Hilbert space of a
kernel with k(x, x) = 1, seen with noise that is R-sub-Gaussian. It states the level zeta' = zeta - O(...) up to a
constant that it does not give. Here are those of the theorem it rests on (Chowdhury & Gopalan, "On Kernelized
Multi-armed Bandits", 2017, Theorem 3 and Lemma 4), regularised by 1 + 2/T. If each of T rounds took the largest
mu + beta sigma with

    beta >= B + R sqrt(2 (gamma_T + 1 + ln(1/delta))),

then with probability 1 - delta the largest p of all settings exceeds the mean over the rounds, and so their largest, by
at most

    gap = 4 beta sqrt((T + 2) gamma_T) / T.

gamma_T is the largest information gain of T points. Of a finite set of settings a greedy choice has at least 1 - 1/e of
it (Nemhauser, Wolsey & Fisher 1978; Srinivas et al. 2010), which bounds it from above. zeta' = zeta - gap: where the
largest p found is at most zeta', all settings of the set are certified, and wrongly so at most zeta + delta of the
time.
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
    """The level for what was tried, at which all settings of the searched set are certified at zeta."""

    zeta: float
    delta: float  # probability that the search was misled
    information_gain: float  # an upper bound of gamma_T
    beta: float  # what the theorem asks for, as a factor of sigma
    gap: float  # by how much p of an untried setting may exceed the largest that was found
    beta_used: float

    in_json: ClassVar[InJson] = {"level": "level", "error": "error"}

    @property
    def level(self) -> float | None:
        """The paper's zeta', which the largest p found is held against; None: there is no guarantee."""
        left = self.zeta - self.gap
        return left if left > 0 and self.beta_used >= self.beta else None

    @property
    def error(self) -> float | None:
        """How often the claim about all settings may be wrong."""
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
    """zeta' of a search of T rounds over a finite set of settings (rows), under what the user says of the surface.

    `norm_bound` is B, `noise` is R, and nobody can read them off the data. `beta` is the least factor of sigma that the
    search used; where a library takes the root of what it calls beta, give the root.
    """
    check_rate("zeta", zeta)
    check_rate("delta", delta)
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise RiskError(f"rounds must be a whole number from 1 up, found {rounds!r}")
    for name, value in (("norm_bound", norm_bound), ("noise", noise), ("beta", beta)):
        if isinstance(value, bool) or not isinstance(value, Real) or not (math.isfinite(value) and value >= 0):
            raise RiskError(f"{name} must be a finite number, 0 or more, found {value!r}")
    points = _scaled(settings, length_scale)
    gain = information_gain(points, rounds, kernel)
    needed = norm_bound + noise * math.sqrt(2 * (gain + 1 + math.log(1 / delta)))
    gap = 4 * needed * math.sqrt((rounds + 2) * gain) / rounds
    return SearchGuarantee(zeta, delta, gain, needed, gap, float(beta))


def information_gain(points: Floats, rounds: int, kernel: str) -> float:
    """At least the largest 1/2 ln det(1 + K / (1 + 2/T)) of T of these points, each as often as one likes."""
    noise = 1 + 2 / rounds
    variance, rows = np.ones(len(points)), np.empty((rounds, len(points)))
    gained = 0.0
    for t in range(rounds):
        best = int(variance.argmax())
        gained += 0.5 * math.log1p(variance[best] / noise)
        known = rows[:t, best] @ rows[:t] if t else 0.0
        rows[t] = (correlation(points[best], points, kernel) - known) / math.sqrt(variance[best] + noise)
        variance = np.maximum(variance - rows[t] ** 2, 0.0)
    return min(gained / (1 - 1 / math.e), 0.5 * rounds * math.log1p(1 / noise))


def correlation(one: Floats, points: Floats, kernel: str) -> Floats:
    """k between a point and others, whose distances are in length scales."""
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
        raise RiskError(f"settings must be a table of numbers, a row for each, found {_shown(settings)}")
    if not (scale > 0).all() or scale.shape not in ((), (1,), (points.shape[1],)):
        raise RiskError(f"length_scale must be a positive number, or one for each column, found {length_scale!r}")
    return np.asarray(points / scale)


def _shown(values: ArrayLike) -> str:
    text = repr(values)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _numbers(values: ArrayLike) -> Floats:
    """As an array; where they are no numbers, one that no caller takes."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([math.nan])
