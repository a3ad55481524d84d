"""Damage: how likely an attack succeeds and goes undetected, from the distances attacks needed.

A distance is `inf` where no arm succeeded and 0 where the clean input is already wrong. Attacks give
upper bounds of the true smallest distance, so success ratios, and damage under an evasion curve, are
*lower* bounds. Relative damage is none: a better attack on one model lowers the numbers of others.
Nothing here knows a ledger, a model or an attack.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.risk.absolute import (
    EvasionComparison,
    compare_damage,
    damage_probability,
    operational_risk,
    shares_of_best,
)
from advrisk.risk.bounded_mean import mean_limits
from advrisk.risk.conflicts import Conflict, Order, Stated, TieValues
from advrisk.risk.decision import index_of, samples_to_decide
from advrisk.risk.evasion import (
    Evasion,
    Floats,
    average,
    checked_distances,
    checked_sizes,
    paired_distances,
)
from advrisk.risk.proportion import half_width, mean_interval, share_interval

__all__ = [
    "DamageComparison",
    "EvasionComparison",
    "OrderChange",
    "PerturbationSize",
    "Stated",
    "TieValues",
    "compare_damage",
    "damage_probability",
    "detector_free_damage",
    "mean_perturbation_size",
    "minimal_perturbation_size",
    "operational_risk",
    "resampled_damage",
    "samples_to_decide",
    "success_ratio",
]

Integers = NDArray[np.int64]

# Resamples are drawn in blocks of about so many (resample, model, sample) cells: 2 MB an array, which
# stays in the cache; blocks of 4 million cells take three times as long.
_BLOCK_CELLS = 250_000


@dataclass(frozen=True)
class OrderChange:
    """`lower` damages less than `higher` among all models, and more once `dropped` is left out."""

    dropped: str
    lower: str
    higher: str


@dataclass(frozen=True)
class PerturbationSize:
    """A size over 0 < d < inf, and how many distances were not in that range."""

    estimate: Estimate
    n_already_wrong: int  # d = 0
    n_resisted: int  # d = inf

    in_json: ClassVar[InJson] = {"estimate": ""}

    @property
    def value(self) -> float:
        return self.estimate.value


@dataclass(frozen=True, eq=False)
class DamageComparison:
    """Relative damage of models compared on the same samples; it means nothing without `models`."""

    models: tuple[str, ...]
    n: int  # samples
    level: float
    estimates: Mapping[str, Estimate]
    clean_error: Mapping[str, float]  # the part of the value that comes from d = 0; the rest is attack
    probability_best: Mapping[str, float]
    evasion: Evasion
    order_changes: tuple[OrderChange, ...]
    tied: Mapping[str, TieValues]  # the same number with equal distances counted in other ways
    _counts: "_Counts" = field(repr=False)
    _resampled: Floats = field(repr=False)  # (resamples, models)
    _matrix: Floats = field(repr=False)  # (models, samples): distances
    stated: Stated = field(default_factory=Stated, repr=False)

    @property
    def ties(self) -> tuple[tuple[str, str], ...]:
        """(lower, higher) of every two models whose order depends on how equal distances are counted."""
        return tuple(
            (a, b)
            for a, b in permutations(self.models, 2)
            if self.estimates[a].value < self.estimates[b].value and self.order(a, b).tie_conflict()
        )

    def conflicts(self, a: str, b: str) -> tuple[Conflict, ...]:
        """Which numbers contradict the order of two models that the interval decides; empty where none does."""
        difference = self.difference(a, b)
        if difference.low <= 0 <= difference.high:
            return ()
        return self.order(*((a, b) if difference.value < 0 else (b, a))).conflicts()

    def order(self, lower: str, higher: str) -> Order:
        """Two models by their relative damage, and what else is known of them."""
        distances = {model: self._matrix[index_of(model, self.models)] for model in (lower, higher)}
        return Order(lower, higher, self.tied, distances, self.stated, self.level)

    def difference(self, a: str, b: str) -> Estimate:
        """Damage of `a` minus damage of `b`, with the interval of the *paired* difference.

        Gaffke's interval of the jackknife's pseudo-values, in which what the two models share cancels, with one sample
        more, which was not seen and says as much against either model as a sample may. A t interval, which knows the
        spread of the samples alone, names the worse of two models in up to 13.8 % of studies, where it fails totally
        on a few rare samples (`python -m bench rare_failures`).
        """
        pair = index_of(a, self.models), index_of(b, self.models)
        if pair not in self._differences:
            self._differences[pair] = self._difference(*pair)
        return self._differences[pair]

    @cached_property
    def _differences(self) -> dict[tuple[int, int], Estimate]:
        """Those that were asked for."""
        return {}

    def _difference(self, i: int, j: int) -> Estimate:
        value = int(self._counts.total[i] - self._counts.total[j]) / self._counts.scale
        low, high = -1.0, 1.0
        if self.n > 1:  # a single sample has nothing to be left out of
            low, high = mean_limits(*self._pseudo_values(i, j, value), self.level)
        if low == high:  # no distance that was seen could tell them apart, which does not say that none does
            half = half_width(0.0, self.n, self.level)
            low, high = value - half, value + half
        low, high = max(min(low, value), -1.0), min(max(high, value), 1.0)
        return Estimate(value, low, high, self.level, self.n, "paired V-statistic, jackknife, Gaffke")

    @cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """Psi where what a sample adds may be extreme, and each model's share of distances below these places."""
        places = np.unique(np.append(self._matrix, (0.0, np.inf)))
        return self.evasion(places), np.array([np.searchsorted(np.sort(row), places) / self.n for row in self._matrix])

    def _pseudo_values(self, i: int, j: int, value: float) -> tuple[Floats, float, float]:
        """What each sample adds to the difference, and the least and the most that one not seen may add.

        A sample x adds what it does as attacked, Psi(x_i) - Psi(x_j), and as part of Psi_avg, the mean over models k of
        F_i(x_k) - F_j(x_k), where F(y) is the share of a model's distances below y. Both are largest and smallest at
        distances that were seen, at 0 or at inf, each of the sample's distances by itself.
        """
        n, n_models = self.n, len(self.models)
        without = (self._counts.without[i] - self._counts.without[j]) / (max(n - 1, 1) ** 2 * n_models)
        each = n * value - (n - 1) * without
        unnoticed, below = self._extremes
        ahead = (below[i] - below[j]) / n_models
        low, high = (
            float(end(unnoticed + ahead) + end(ahead - unnoticed) + (n_models - 2) * end(ahead) - value)
            for end in (np.min, np.max)
        )
        return each, min(low, float(each.min())), max(high, float(each.max()))

    def standard_errors(self, a: str, b: str) -> tuple[float, float]:
        """Of the difference, by the jackknife; and 0, since the curve is made from the same samples."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        return _jackknife_error(self._counts.without[i] - self._counts.without[j], len(self.models)), 0.0

    def undecided(self, a: str, b: str) -> bool:
        """Whether the paired interval of the difference contains 0, or another number says the opposite."""
        difference = self.difference(a, b)
        return difference.low <= 0 <= difference.high or bool(self.conflicts(a, b))

    def probability_lower(self, a: str, b: str) -> float:
        """Share of the resamples in which `a` has less damage than `b`, equal ones counting half."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        ahead = np.sign(self._resampled[:, j] - self._resampled[:, i])
        return float((1 + ahead.mean()) / 2)


def success_ratio(distances: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Attack success ratio: ASR(tau) = share of samples with d <= tau.

    An attack that never succeeded (d = inf) is no success at tau = inf either.
    """
    found = checked_distances(distances, "distances")
    limits = checked_sizes(thresholds, "thresholds")
    successes = np.sort(found[found < np.inf])
    return np.asarray(np.searchsorted(successes, limits, side="right") / found.size, dtype=np.float64)


def detector_free_damage(
    distances_by_model: Mapping[str, ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    stated: Stated | None = None,
    rng: np.random.Generator,
) -> DamageComparison:
    """Klemenc & Trittenbach, "Selecting Models based on the Risk of Damage Caused by Adversarial Attacks".

    P_j = (1/I) sum_i Psi_avg(d_ji) = #{(i, k, l): d_kl > d_ji} / (I^2 J) for I samples and J models:
    a ratio of integers, exact, in O(IJ log IJ); its jackknife takes O(IJ (J + log IJ)).

    The number is *relative*. Without ties its mean over the compared models is 1/2 - 1/(2IJ),
    whatever they are, and leaving one out can swap two others (`order_changes`).

    A sample enters twice, as attacked and as part of Psi_avg; so P_j is a V-statistic with a bias
    of O(1/I), and its variance is that of the delete-one-sample jackknife, a sample being deleted
    for all models in both roles. The interval is Korn and Graubard's: Clopper and Pearson's at the
    sample size that would give a proportion this variance. Simulated with 2 % successes and I = 50,
    it covers 98 % where a t interval covers 63 %. Two guards, without which it fell to 60 % where
    nearly all samples look alike: the standard error is at least 1/I (unless that makes the size
    less than I), and with no variance at all the size is I. If the value is far from 0 and 1 and
    rests on a few rare samples, 95 % intervals still cover only about 92 %.

    `probability_best` is the share of `resamples` bootstrap samples, drawn once for all models, in
    which a model has the least damage; equal ones share.

    `stated` is what an order must not contradict (`conflicts`).
    """
    models, matrix = paired_distances(distances_by_model)
    _check_comparison(models, level, resamples)
    pool = _pooled(matrix)
    counts = _counted(matrix, pool)
    resampled = _resampled_counts(pool, resamples, rng)
    return DamageComparison(
        models=models,
        n=matrix.shape[1],
        level=level,
        estimates={model: _relative_damage(counts, j, level) for j, model in enumerate(models)},
        clean_error=dict(zip(models, _clean_errors(matrix, counts.scale), strict=True)),
        probability_best=dict(zip(models, shares_of_best(resampled), strict=True)),
        evasion=average(distances_by_model),
        order_changes=_order_changes(models, counts.pairs),
        tied=_tied(models, matrix, counts),
        _counts=counts,
        _resampled=resampled,
        _matrix=matrix,
        stated=stated or Stated(),
    )


def resampled_damage(matrix: Floats, drawn: Integers, counts: Integers) -> Floats:
    """Relative damage over the first m of the drawn samples, for each m of `counts`: (models, resamples, counts).

    `drawn` is (resamples, draws); each draw takes a sample for all models.
    """
    n_models, n = matrix.shape
    pool = _pooled(matrix)
    order = pool.order % n
    values = np.empty((n_models, len(drawn), counts.size))
    for r, row in enumerate(drawn):
        weights = np.zeros(n)
        for place, (start, end) in enumerate(zip((0, *counts[:-1]), counts, strict=True)):
            weights += np.bincount(row[start:end], minlength=n)
            up_to = np.cumsum(weights.take(order))
            for j in range(n_models):
                not_greater = (up_to.take(pool.last[j]) * weights).sum()
                values[j, r, place] = 1 - not_greater / (float(counts[place]) ** 2 * n_models)
    return values


def minimal_perturbation_size(distances: ArrayLike, *, level: float = 0.95) -> PerturbationSize:
    """The smallest d with 0 < d < inf.

    The smallest possible distance is not greater than the smallest one seen, and nothing in the
    data keeps it from 0: hence the interval [0, value].
    """
    used, n_already_wrong, n_resisted = _attacked(distances)
    value = float(used.min())
    return PerturbationSize(Estimate(value, 0.0, value, level, used.size, "minimum"), n_already_wrong, n_resisted)


def mean_perturbation_size(distances: ArrayLike, *, level: float = 0.95) -> PerturbationSize:
    """The mean of d over 0 < d < inf, with a t interval (from one distance alone: [0, inf])."""
    _check_level(level)
    used, n_already_wrong, n_resisted = _attacked(distances)
    estimate = Estimate(*mean_interval(used, level), level, used.size, "mean, t")
    return PerturbationSize(estimate, n_already_wrong, n_resisted)


def _attacked(distances: ArrayLike) -> tuple[Floats, int, int]:
    found = checked_distances(distances, "distances")
    already_wrong, resisted = found == 0, np.isinf(found)
    used = found[~already_wrong & ~resisted]
    n_already_wrong, n_resisted = int(already_wrong.sum()), int(resisted.sum())
    if used.size == 0:
        raise RiskError(
            f"no perturbation has a size: of {found.size} distances {n_already_wrong} are 0 (already wrong) "
            f"and {n_resisted} are inf (resisted)"
        )
    return used, n_already_wrong, n_resisted


# Counting


@dataclass(frozen=True)
class _Pool:
    """All distances in one order; `first` and `last` are the ends of a distance's run of equal ones."""

    order: NDArray[np.intp]  # (models * samples,)
    first: NDArray[np.intp]  # (models, samples)
    last: NDArray[np.intp]  # (models, samples)


@dataclass(frozen=True)
class _Counts:
    """Triples (i, k, l) with d_kl > d_ji, for each model j."""

    pairs: Integers  # (j, k): those with that k
    total: Integers  # (j,): all of them
    without: Integers  # (j, m): those with neither i nor l equal to m
    scale: int  # as many triples as there are


def _pooled(matrix: Floats) -> _Pool:
    flat = matrix.ravel()
    order = np.argsort(flat)
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(starts, append=flat.size)
    first, last = np.empty_like(order), np.empty_like(order)
    first[order] = np.repeat(starts, lengths)
    last[order] = np.repeat(starts + lengths - 1, lengths)
    return _Pool(order, first.reshape(matrix.shape), last.reshape(matrix.shape))


def _counted(matrix: Floats, pool: _Pool) -> _Counts:
    n_models, n = matrix.shape
    greater = matrix.size - 1 - pool.last
    total = greater.sum(axis=1)
    pairs = np.empty((n_models, n_models), dtype=np.int64)
    without = total[:, None] - greater  # m as the attacked sample
    owner = pool.order // n
    for j in range(n_models):
        smaller = np.concatenate(([0], np.cumsum(owner == j)))[pool.first]  # (k, l) -> #{i: d_ji < d_kl}
        pairs[j] = smaller.sum(axis=1)
        without[j] -= smaller.sum(axis=0)  # m as part of Psi_avg
        without[j] += (matrix > matrix[j]).sum(axis=0)  # in both roles: taken away twice
    return _Counts(pairs, total, without, n * n * n_models)


def _resampled_counts(pool: _Pool, resamples: int, rng: np.random.Generator) -> Floats:
    """`total` of bootstrap samples, (resamples, models); whole numbers far below 2^53, so exact."""
    n_models, n = pool.last.shape
    block = max(1, _BLOCK_CELLS // pool.last.size)
    counts = np.empty((resamples, n_models))
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        weights = _bootstrap_weights(size, n, rng)
        up_to = np.cumsum(weights.take(pool.order % n, axis=1), axis=1)
        not_greater = up_to.take(pool.last.ravel(), axis=1).reshape(size, n_models, n)
        counts[start : start + size] = n * pool.last.size - (not_greater @ weights[:, :, None])[:, :, 0]
    return counts


def _bootstrap_weights(size: int, n: int, rng: np.random.Generator) -> Floats:
    """How often each of n samples is drawn in n draws; counting draws is faster than rng.multinomial."""
    draws = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
    return np.bincount(draws.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


# What the counts say


def _relative_damage(counts: _Counts, j: int, level: float) -> Estimate:
    n_models, n = counts.without.shape
    value = int(counts.total[j]) / counts.scale
    low, high = share_interval(value, _jackknife_error(counts.without[j], n_models), n, level)
    return Estimate(value, low, high, level, n, "V-statistic, jackknife, Korn-Graubard")


def _clean_errors(matrix: Floats, scale: int) -> list[float]:
    n_positive = int((matrix > 0).sum())
    return [int(n_zero) * n_positive / scale for n_zero in (matrix == 0).sum(axis=1)]


def _order_changes(models: tuple[str, ...], pairs: Integers) -> tuple[OrderChange, ...]:
    total = pairs.sum(axis=1)
    return tuple(
        OrderChange(models[dropped], models[lower], models[higher])
        for dropped in range(len(models))
        for lower, higher in _swaps(total, total - pairs[:, dropped])
        if dropped not in (lower, higher)
    )


def _tied(models: tuple[str, ...], matrix: Floats, counts: _Counts) -> dict[str, TieValues]:
    """#{d_kl > d_ji} and #{d_kl >= d_ji} as shares, and their mean; d_ji = inf does no damage either way."""
    n_resisted = np.isinf(matrix).sum(axis=1)
    not_less = counts.scale - counts.pairs.sum(axis=0) - n_resisted * n_resisted.sum()
    return {
        model: TieValues(total / counts.scale, (total + at_most) / (2 * counts.scale), at_most / counts.scale)
        for model, total, at_most in zip(models, counts.total.tolist(), not_less.tolist(), strict=True)
    }


def _swaps(before: Integers, after: Integers) -> list[tuple[int, int]]:
    """Pairs (lower, higher) of `before` that are the other way round in `after`."""
    reversed_ = (before[:, None] < before[None, :]) & (after[:, None] > after[None, :])
    return [(int(lower), int(higher)) for lower, higher in np.argwhere(reversed_)]


# Intervals


def _jackknife_error(without: Integers, n_models: int) -> float:
    """Standard error from the counts that are left when each sample in turn is deleted."""
    n = without.size
    centred = (without - without[0]).astype(np.float64)  # exactly 0 if no sample matters
    if not centred.any():
        return 0.0
    centred -= centred.mean()
    return math.sqrt((n - 1) / n * float(centred @ centred)) / ((n - 1) ** 2 * n_models)


# Checks


def _check_comparison(models: tuple[str, ...], level: float, resamples: int) -> None:
    if len(models) == 1:
        raise RiskError(
            f"only {models[0]!r} was given: without a detector damage is relative to the compared models, and that of "
            "one model alone is about 1/2 whatever it is; give two or more, or an evasion curve"
        )
    _check_level(level)
    if resamples < 1:
        raise RiskError(f"resamples must be at least 1, found {resamples}")


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
