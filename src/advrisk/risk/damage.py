"""Damage: the probability that an attack succeeds and goes undetected, from minimal adversarial distances.

A distance is `inf` where no arm succeeded and 0 where the clean input is already wrong. Attacks give upper bounds of
the true minimal distance, so success ratios and damage under an evasion curve are *lower* bounds. Relative damage is
not a bound: a better attack on one model lowers the numbers of the others.
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

# (resample, model, sample) cells in memory at a time: 2 MB an array stays in the cache; blocks of 4 million cells take
# three times as long.
_BLOCK_CELLS = 250_000


@dataclass(frozen=True)
class OrderChange:
    """`lower` has less damage than `higher` among all models, and more without `dropped`."""

    dropped: str
    lower: str
    higher: str


@dataclass(frozen=True)
class PerturbationSize:
    """A perturbation size over 0 < d < inf, with the numbers of distances outside that range."""

    estimate: Estimate
    n_already_wrong: int  # d = 0
    n_resisted: int  # d = inf

    in_json: ClassVar[InJson] = {"estimate": ""}

    @property
    def value(self) -> float:
        return self.estimate.value


@dataclass(frozen=True, eq=False)
class DamageComparison:
    """Relative damage of models on the same samples; its values are comparable only among `models`."""

    models: tuple[str, ...]
    n: int  # samples
    level: float
    estimates: Mapping[str, Estimate]
    clean_error: Mapping[str, float]  # the part of the value from d = 0; the remainder is due to attacks
    probability_best: Mapping[str, float]
    evasion: Evasion
    order_changes: tuple[OrderChange, ...]
    tied: Mapping[str, TieValues]  # the same number with ties counted in other ways
    _counts: "_Counts" = field(repr=False)
    _resampled: Floats = field(repr=False)  # (resamples, models)
    _matrix: Floats = field(repr=False)  # (models, samples): distances
    stated: Stated = field(default_factory=Stated, repr=False)

    @property
    def ties(self) -> tuple[tuple[str, str], ...]:
        """Pairs (lower, higher) whose order depends on how ties are counted."""
        return tuple(
            (a, b)
            for a, b in permutations(self.models, 2)
            if self.estimates[a].value < self.estimates[b].value and self.order(a, b).tie_conflict()
        )

    def conflicts(self, a: str, b: str) -> tuple[Conflict, ...]:
        """Numbers that contradict the order of a pair whose interval excludes 0; empty for other pairs."""
        difference = self.difference(a, b)
        if difference.low <= 0 <= difference.high:
            return ()
        return self.order(*((a, b) if difference.value < 0 else (b, a))).conflicts()

    def order(self, lower: str, higher: str) -> Order:
        """The order of two models by relative damage, with what may contradict it."""
        distances = {model: self._matrix[index_of(model, self.models)] for model in (lower, higher)}
        return Order(lower, higher, self.tied, distances, self.stated, self.level)

    def difference(self, a: str, b: str) -> Estimate:
        """Damage of `a` minus damage of `b`, with the interval of the *paired* difference.

        Gaffke's interval of the jackknife pseudo-values, in which common variation cancels, with one additional,
        unobserved sample of extreme value. A t interval, based on the observed spread alone, names the worse of two
        models in up to 13.8 % of studies in which that model fails totally on a few rare samples (`python -m bench
        rare_failures`).
        """
        pair = index_of(a, self.models), index_of(b, self.models)
        if pair not in self._differences:
            self._differences[pair] = self._difference(*pair)
        return self._differences[pair]

    @cached_property
    def _differences(self) -> dict[tuple[int, int], Estimate]:
        """Cache of the computed differences, by pair of indices."""
        return {}

    def _difference(self, i: int, j: int) -> Estimate:
        value = int(self._counts.total[i] - self._counts.total[j]) / self._counts.scale
        low, high = -1.0, 1.0
        if self.n > 1:  # the jackknife needs two samples
            low, high = mean_limits(*self._pseudo_values(i, j, value), self.level)
        if low == high:  # no observed distance separates the models, but an unobserved one may
            half = half_width(0.0, self.n, self.level)
            low, high = value - half, value + half
        low, high = max(min(low, value), -1.0), min(max(high, value), 1.0)
        return Estimate(value, low, high, self.level, self.n, "paired V-statistic, jackknife, Gaffke")

    @cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """Psi at the distances where a sample's contribution may be extreme, and each model's share of distances below.

        These are the observed distances, 0 and inf.
        """
        sizes = np.unique(np.append(self._matrix, (0.0, np.inf)))
        return self.evasion(sizes), np.array([np.searchsorted(np.sort(row), sizes) / self.n for row in self._matrix])

    def _pseudo_values(self, i: int, j: int, value: float) -> tuple[Floats, float, float]:
        """Contribution of each sample to the difference, and the extremes that an unobserved one may contribute.

        A sample x contributes Psi(x_i) - Psi(x_j) as attacked, and the mean over models k of F_i(x_k) - F_j(x_k) as
        part of Psi_avg, where F(y) is the share of a model's distances below y. Both are extreme at observed
        distances, at 0 or at inf, for each of the sample's distances separately.
        """
        n, n_models = self.n, len(self.models)
        without = (self._counts.without[i] - self._counts.without[j]) / (max(n - 1, 1) ** 2 * n_models)
        each = n * value - (n - 1) * without
        undetected, below = self._extremes
        ahead = (below[i] - below[j]) / n_models
        low, high = (
            float(end(undetected + ahead) + end(ahead - undetected) + (n_models - 2) * end(ahead) - value)
            for end in (np.min, np.max)
        )
        return each, min(low, float(each.min())), max(high, float(each.max()))

    def standard_errors(self, a: str, b: str) -> tuple[float, float]:
        """Jackknife standard error of the difference; and 0, since the curve comes from the same samples."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        return _jackknife_error(self._counts.without[i] - self._counts.without[j], len(self.models)), 0.0

    def undecided(self, a: str, b: str) -> bool:
        """Whether the paired interval of the difference contains 0, or another number contradicts the order."""
        difference = self.difference(a, b)
        return difference.low <= 0 <= difference.high or bool(self.conflicts(a, b))

    def probability_lower(self, a: str, b: str) -> float:
        """Share of the resamples in which `a` has less damage than `b`; ties count half."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        ahead = np.sign(self._resampled[:, j] - self._resampled[:, i])
        return float((1 + ahead.mean()) / 2)


def success_ratio(distances: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Attack success ratio: ASR(tau) = share of samples with d <= tau.

    A sample that resisted (d = inf) is not a success at tau = inf either.
    """
    checked = checked_distances(distances, "distances")
    limits = checked_sizes(thresholds, "thresholds")
    successes = np.sort(checked[checked < np.inf])
    return np.asarray(np.searchsorted(successes, limits, side="right") / checked.size, dtype=np.float64)


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

    The number is *relative*. Without ties, its mean over the compared models is always 1/2 - 1/(2IJ), and leaving one
    out can swap two others (`order_changes`).

    A sample enters twice, as attacked and as part of Psi_avg. So P_j is a V-statistic with a bias of O(1/I), and its
    variance is that of the delete-one-sample jackknife, which deletes a sample for all models in both roles. The
    interval is Korn and Graubard's: Clopper and Pearson's at the sample size that gives a proportion this variance.
    Simulated with 2 % successes and I = 50, it covers 98 % where a t interval covers 63 %. Two guards apply, without
    which coverage fell to 60 % for nearly identical samples. The standard error is at least 1/I (unless that makes the
    size less than I), and with no variance at all the size is I. If the value is far from 0 and 1 and depends on a few
    rare samples, 95 % intervals cover only about 92 %.

    `probability_best` is the share of `resamples` bootstrap samples, drawn once for all models, in which a model has
    the least damage; ties are split equally. `stated` is what an order must not contradict (`conflicts`).
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
    """Relative damage over the first m drawn samples, for each m of `counts`: (models, resamples, counts).

    `drawn` is (resamples, draws); each draw takes a sample for all models.
    """
    n_models, n = matrix.shape
    pool = _pooled(matrix)
    order = pool.order % n
    values = np.empty((n_models, len(drawn), counts.size))
    for r, row in enumerate(drawn):
        weights = np.zeros(n)
        for c, (start, end) in enumerate(zip((0, *counts[:-1]), counts, strict=True)):
            weights += np.bincount(row[start:end], minlength=n)
            up_to = np.cumsum(weights.take(order))
            for j in range(n_models):
                not_greater = (up_to.take(pool.last[j]) * weights).sum()
                values[j, r, c] = 1 - not_greater / (float(counts[c]) ** 2 * n_models)
    return values


def minimal_perturbation_size(distances: ArrayLike, *, level: float = 0.95) -> PerturbationSize:
    """Minimal adversarial distance: the smallest d with 0 < d < inf.

    The true minimum is at most the observed one, and the data do not bound it away from 0: hence the interval
    [0, value].
    """
    used, n_already_wrong, n_resisted = _attacked(distances)
    value = float(used.min())
    return PerturbationSize(Estimate(value, 0.0, value, level, used.size, "minimum"), n_already_wrong, n_resisted)


def mean_perturbation_size(distances: ArrayLike, *, level: float = 0.95) -> PerturbationSize:
    """Mean adversarial distance: the mean of d over 0 < d < inf, with a t interval ([0, inf] for one distance)."""
    _check_level(level)
    used, n_already_wrong, n_resisted = _attacked(distances)
    estimate = Estimate(*mean_interval(used, level), level, used.size, "mean, t")
    return PerturbationSize(estimate, n_already_wrong, n_resisted)


def _attacked(distances: ArrayLike) -> tuple[Floats, int, int]:
    checked = checked_distances(distances, "distances")
    already_wrong, resisted = checked == 0, np.isinf(checked)
    used = checked[~already_wrong & ~resisted]
    n_already_wrong, n_resisted = int(already_wrong.sum()), int(resisted.sum())
    if used.size == 0:
        raise RiskError(
            f"no perturbation has a size: of {checked.size} distances {n_already_wrong} are 0 (already wrong) "
            f"and {n_resisted} are inf (resisted)"
        )
    return used, n_already_wrong, n_resisted


# Counting


@dataclass(frozen=True)
class _Pool:
    """Ranks of all distances; `first` and `last` are the ends of a distance's run of ties."""

    order: NDArray[np.intp]  # (models * samples,)
    first: NDArray[np.intp]  # (models, samples)
    last: NDArray[np.intp]  # (models, samples)


@dataclass(frozen=True)
class _Counts:
    """Triples (i, k, l) with d_kl > d_ji, for each model j."""

    pairs: Integers  # (j, k): those with that k
    total: Integers  # (j,): all of them
    without: Integers  # (j, m): those with neither i nor l equal to m
    scale: int  # the number of triples


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
        without[j] += (matrix > matrix[j]).sum(axis=0)  # in both roles: subtracted twice
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


# Values from counts


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
    """#{d_kl > d_ji} and #{d_kl >= d_ji} as shares, and their mean; d_ji = inf counts in neither."""
    n_resisted = np.isinf(matrix).sum(axis=1)
    not_less = counts.scale - counts.pairs.sum(axis=0) - n_resisted * n_resisted.sum()
    return {
        model: TieValues(total / counts.scale, (total + at_least) / (2 * counts.scale), at_least / counts.scale)
        for model, total, at_least in zip(models, counts.total.tolist(), not_less.tolist(), strict=True)
    }


def _swaps(before: Integers, after: Integers) -> list[tuple[int, int]]:
    """Pairs (lower, higher) of `before` that have the opposite order in `after`."""
    reversed_ = (before[:, None] < before[None, :]) & (after[:, None] > after[None, :])
    return [(int(lower), int(higher)) for lower, higher in np.argwhere(reversed_)]


# Intervals


def _jackknife_error(without: Integers, n_models: int) -> float:
    """Standard error from the counts without each sample in turn."""
    n = without.size
    centred = (without - without[0]).astype(np.float64)  # exactly 0 if all samples contribute equally
    if not centred.any():
        return 0.0
    centred -= centred.mean()
    return math.sqrt((n - 1) / n * float(centred @ centred)) / ((n - 1) ** 2 * n_models)


# Checks


def _check_comparison(models: tuple[str, ...], level: float, resamples: int) -> None:
    if len(models) == 1:
        raise RiskError(
            f"found only the model {models[0]!r}; without a detector, damage is relative to the compared models, and "
            "always about 1/2 for a single one; give two or more models, or an evasion curve"
        )
    _check_level(level)
    if resamples < 1:
        raise RiskError(f"resamples must be at least 1, found {resamples}")


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
