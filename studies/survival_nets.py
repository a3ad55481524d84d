"""Does depth help? Asked of networks, each of which counts once: its survival is one number, however many attacks.

Samples and attacks tell how long *this* network lasts. Only other networks of the same depth tell whether its depth is
why; so the test and the interval here compare networks, and shuffle depths among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate

Floats = NDArray[np.float64]
SHUFFLES = 20_000


@dataclass(frozen=True)
class Trend:
    """How a number that each network has changes with its depth, networks of different groups apart."""

    slope: Estimate  # of the number, for each layer more
    p_value: float  # of depths that are dealt out anew within each group
    n: int


def trend(values: Sequence[float], depths: Sequence[float], groups: Sequence[str], *, level: float = 0.95) -> Trend:
    """The slope over depth within groups, Student's interval of it, and a permutation test of no slope at all.

    value = a(group) + slope · depth + noise, by least squares: both centred in their group, slope = Σ d v / Σ d².
    """
    from scipy.special import stdtrit

    y, x, group = np.asarray(values, float), np.asarray(depths, float), np.asarray(groups)
    if not np.isfinite(y).all():
        raise RiskError(f"{int((~np.isfinite(y)).sum())} of {y.size} networks have no finite number to compare")
    v, d = _centred(y, group), _centred(x, group)
    free = y.size - np.unique(group).size - 1
    if not d.any() or free < 1:
        raise RiskError(f"{y.size} networks in {np.unique(group).size} groups: too few, or of one depth in each group")
    slope = float(d @ v / (d @ d))
    error = float(np.sqrt(((v - slope * d) ** 2).sum() / free / (d @ d)))
    half = float(stdtrit(free, (1 + level) / 2)) * error
    estimate = Estimate(slope, slope - half, slope + half, level, y.size, "least squares over networks")
    return Trend(estimate, _shuffled_p(v, d, group), y.size)


def _shuffled_p(v: Floats, d: Floats, group: NDArray[np.str_]) -> float:
    """The share of deals that are as far from none as the real one, which counts as one of them."""
    rng = np.random.default_rng(0)
    seen = abs(float(d @ v))
    dealt = np.zeros(SHUFFLES)
    for name in np.unique(group):
        own = group == name
        dealt += rng.permuted(np.tile(d[own], (SHUFFLES, 1)), axis=1) @ v[own]
    return float((1 + (np.abs(dealt) >= seen * (1 - 1e-12)).sum()) / (1 + SHUFFLES))


def _centred(values: Floats, group: NDArray[np.str_]) -> Floats:
    centred = values.copy()
    for name in np.unique(group):
        centred[group == name] -= values[group == name].mean()
    return centred


@dataclass(frozen=True)
class Spread:
    """How a number varies: between networks that differ in nothing but their seed, and between depths."""

    within: float  # standard deviation between networks of a kind
    between: float  # standard deviation of the means of kinds


def spread(values: Sequence[float], kinds: Sequence[str]) -> Spread:
    """Standard deviations within and between kinds of networks."""
    y, kind = np.asarray(values, float), np.asarray(kinds)
    names = np.unique(kind)
    free = y.size - names.size
    if names.size < 2 or free < 1:
        raise RiskError(f"{y.size} networks of {names.size} kinds: two kinds, and two networks of one, are needed")
    within = float(np.sqrt((_centred(y, kind) ** 2).sum() / free))
    return Spread(within, float(np.std([y[kind == name].mean() for name in names], ddof=1)))
