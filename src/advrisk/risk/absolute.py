"""Damage under an evasion curve: the probability that an attack succeeds and goes undetected, with its interval.

Unlike relative damage, it is a probability and depends on one model alone. The interval covers both sources of
uncertainty: the samples, and the fit of the curve.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.decision import index_of
from advrisk.risk.dirichlet_mean import Mixture
from advrisk.risk.evasion import (
    AverageEvasion,
    Evasion,
    EvasionCurve,
    Floats,
    MonotoneCurve,
    MonotoneEvasion,
    as_curve,
    curves_of,
    paired_distances,
    values_of,
)
from advrisk.risk.evasion.monotone import difference_bounds
from advrisk.risk.proportion import proportion

Indices = NDArray[np.intp]

_WEIGHTS = 4096  # draws for the probabilities of being best, shared equally among the curves
_BLOCK_CELLS = 1_000_000  # weights or values in memory at a time
_SEED = 0  # limits from drawn weights are the same for every caller
_SIZES = 256  # sizes at which a curve is evaluated; linear interpolation in between
_GROUPS = 128  # groups of samples with neighbouring sizes, averaged for the limits


@dataclass(frozen=True, eq=False)
class EvasionComparison:
    """Damage of models on the same samples and under the same evasion curve."""

    models: tuple[str, ...]
    n: int  # samples
    level: float
    estimates: Mapping[str, Estimate]
    clean_error: Mapping[str, float]  # the part of the value from d = 0; the remainder is due to attacks
    extrapolated: Mapping[str, float]  # share of samples whose distance is outside the detector's answers
    probability_best: Mapping[str, float]
    evasion: EvasionCurve
    _distances: Floats = field(repr=False)  # (models, samples)
    _curves: Sequence[Evasion] = field(repr=False)
    _drawn: Floats = field(repr=False)  # (draws, models): means of Psi over weighted samples

    def difference(self, a: str, b: str) -> Estimate:
        """Damage of `a` minus damage of `b`, with the interval of the *paired* difference.

        Both models share the sample weights and the drawn curves, so common variation cancels. The weight of the
        unobserved sample goes to a difference of -1 for the lower limit and of 1 for the upper one. For a curve with
        bounds, the limits cover every non-increasing curve within them.
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
        value = float((self._values[i] - self._values[j]).mean())
        if _monotone(self._curves[:1]):
            low, high = self._bounded_limits(i, j)
        else:
            group = _groups(self._distances[[i, j]], self._values[i] - self._values[j])
            first, second = (_Grouped.of(self._distances[model], group) for model in (i, j))
            values = first.values(self._curves) - second.values(self._curves)
            low, high = _weighted_limits(values, values, first.counts, -1.0, self.level)
        return _estimate(value, max(low, -1.0), min(high, 1.0), self.level, self.n, "paired, Gaffke")

    def undecided(self, a: str, b: str) -> bool:
        """Whether the paired interval of the difference contains 0."""
        difference = self.difference(a, b)
        return difference.low <= 0 <= difference.high

    def probability_lower(self, a: str, b: str) -> float:
        """Probability that `a` has less damage than `b`; ties count half."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        ahead = np.sign(self._drawn[:, j] - self._drawn[:, i])
        return float((1 + ahead.mean()) / 2)

    def standard_errors(self, a: str, b: str) -> tuple[float, float]:
        """Standard errors of the difference: the part that more samples reduce, and the part that only answers do."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        each = self._values[i] - self._values[j]
        of_samples = float(each.std(ddof=1)) / np.sqrt(self.n) if self.n > 1 else 0.0
        of_curve = float((self._drawn_means[:, i] - self._drawn_means[:, j]).std())
        return float(of_samples), of_curve + self._undetermined(i, j)

    def errors_of(self, model: str) -> tuple[float, float]:
        """One model's standard deviation per sample, and the standard error that only more answers reduce."""
        i = index_of(model, self.models)
        deviation = self._values[i].std(ddof=1) if self.n > 1 else 0.0
        undetermined = 0.0
        if isinstance(self.evasion, MonotoneEvasion):
            low, high = self.evasion.curve.bounds(self._distances[i])
            undetermined = float((high - low).mean()) / 4
        return float(deviation), float(self._drawn_means[:, i].std()) + undetermined

    @cached_property
    def _values(self) -> Floats:
        """Psi of every distance, (models, samples)."""
        return self.evasion(self._distances)

    @cached_property
    def _drawn_means(self) -> Floats:
        """Mean damage of each model under each drawn curve, (curves, models)."""
        sizes, index = np.unique(self._distances, return_inverse=True)
        weights = np.zeros((sizes.size, len(self.models)))
        for j, row in enumerate(index.reshape(self._distances.shape)):
            weights[:, j] = np.bincount(row, minlength=sizes.size) / self.n
        block = max(1, _BLOCK_CELLS // sizes.size)
        curves = self._curves[:_WEIGHTS]
        parts = [curves[first : first + block] for first in range(0, len(curves), block)]
        return np.concatenate([values_of(part, sizes) @ weights for part in parts])

    def _undetermined(self, i: int, j: int) -> float:
        """What the curve leaves open between the sizes with answers, expressed as a standard error."""
        if not isinstance(self.evasion, MonotoneEvasion):
            return 0.0
        equal = np.full((1, self.n), 1 / self.n)
        low, high = difference_bounds(self.evasion.curve, self._distances[i], self._distances[j], equal)
        return float(high[0] - low[0]) / 4

    def _bounded_limits(self, i: int, j: int) -> tuple[float, float]:
        """Limits from drawn weights: how far curves within bounds can separate two models depends on the weights."""
        parts = [
            difference_bounds(curve, self._distances[i], self._distances[j], of_curve[:, :-1])
            for curves, weights in _weighted(self._curves, self._distances.shape, _SEED)
            for curve, of_curve in zip(_monotone(curves), weights, strict=True)
        ]
        unobserved = np.concatenate(
            [w[:, :, -1].ravel() for _, w in _weighted(self._curves, self._distances.shape, _SEED)]
        )
        lows, highs = np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])
        tail = (1 - self.level) / 2
        low = np.quantile(lows - unobserved, tail, method="lower")
        return float(low), float(np.quantile(highs + unobserved, 1 - tail, method="higher"))


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Distances of samples, and the group of each: equal samples, or neighbours that are averaged."""

    distances: Floats
    group: Indices
    counts: Floats  # samples of each group

    @classmethod
    def of(cls, distances: Floats, group: Indices) -> "_Grouped":
        return cls(distances, group, np.bincount(group).astype(np.float64))

    def values(self, curves: Sequence[Evasion], *, bound: Literal["low", "high"] = "low") -> Floats:
        """Mean of every curve in each group, (curves, groups); for curves with bounds, the mean of that bound."""
        finite = np.isfinite(self.distances)
        sizes, index = np.unique(self.distances[finite], return_inverse=True)
        share = np.zeros((sizes.size, self.counts.size))
        np.add.at(share, (index, self.group[finite]), 1 / self.counts[self.group[finite]])
        if sizes.size > _SIZES and not _monotone(curves[:1]):
            sizes, share = _fewer(sizes, share)
        block = max(1, _BLOCK_CELLS // max(sizes.size, 1))
        parts = [curves[first : first + block] for first in range(0, len(curves), block)]
        return np.concatenate([_one_sided(part, sizes, bound) @ share for part in parts])


def _fewer(sizes: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Thin out to `_SIZES` sizes, with shares that keep the means of curves that are linear between them."""
    kept = np.unique(np.linspace(0, sizes.size - 1, _SIZES).round().astype(np.intp))
    points = sizes[kept]
    below = np.clip(np.searchsorted(points, sizes, side="right") - 1, 0, points.size - 2)
    part = ((sizes - points[below]) / (points[below + 1] - points[below]))[:, None]
    moved = np.zeros((points.size, share.shape[1]))
    np.add.at(moved, below, (1 - part) * share)
    np.add.at(moved, below + 1, part * share)
    return points, moved


def damage_probability(
    distances: ArrayLike, evasion: Evasion, *, level: float = 0.95, rng: np.random.Generator
) -> Estimate:
    """P = (1/I) sum_i Psi(d_i): the probability that an attack succeeds and goes undetected.

    Klemenc & Trittenbach, Corollary 4.10. Samples that resisted count 0. `compare_damage` describes the interval.
    """
    return compare_damage({"the model": distances}, evasion, level=level, rng=rng).estimates["the model"]


def operational_risk(
    distances: ArrayLike, evasion: Evasion, *, cost: float, level: float = 0.95, rng: np.random.Generator
) -> Estimate:
    """Expected cost of one attacked input: damage probability times the cost of one damage.

    Relative damage is not a probability and is refused.
    """
    return costed(damage_probability(distances, evasion, level=level, rng=rng), cost)


def costed(damage: Estimate, cost: float) -> Estimate:
    """Damage probability times the cost of one damage."""
    if not 0 <= cost < np.inf:
        raise RiskError(f"the cost of one damage must be a number, at least 0, found {cost}")
    low, value, high = (cost * share for share in (damage.low, damage.value, damage.high))
    return Estimate(value, low, high, damage.level, damage.n, f"{damage.method}, x cost")


def compare_damage(
    distances_by_model: Mapping[str, ArrayLike], evasion: Evasion, *, level: float = 0.95, rng: np.random.Generator
) -> EvasionComparison:
    """Compare the damage probability of one or more models on the same samples and under one curve.

    The interval is Gaffke's (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable"). Samples get random weights, exponential and normalised. One additional, unobserved sample
    has damage 0 for the lower and 1 for the upper limit. The limits are quantiles of the weighted mean. If Psi is 0 or
    1 everywhere, that is Clopper and Pearson's interval, which is then computed directly. The interval is never [0, 0]
    and needs no variance, which few successes cannot provide.

    The interval includes the uncertainty of a fitted curve: the weighted mean is that of a mixture over the curves that
    represent it (`curves_of`). Its quantiles are computed and not drawn, so only the probability of being best uses
    `rng`, and limits are the same for every caller. For a curve with bounds, the lower limit uses the lower bound and
    the upper limit the upper one.
    """
    models, matrix = paired_distances(distances_by_model)
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    curve = absolute_curve(evasion)
    curves = curves_of(curve)
    exact = curves[0] is curve
    drawn = _drawn(matrix, curves, rng)
    values = curve(matrix)
    return EvasionComparison(
        models=models,
        n=matrix.shape[1],
        level=level,
        estimates={model: _damage(values[j], matrix[j], curves, level, exact=exact) for j, model in enumerate(models)},
        clean_error={model: float(values[j][matrix[j] == 0].sum() / matrix.shape[1]) for j, model in enumerate(models)},
        extrapolated=dict(zip(models, curve.extrapolated(matrix).mean(axis=1).tolist(), strict=True)),
        probability_best=dict(zip(models, shares_of_best(drawn), strict=True)),
        evasion=curve,
        _distances=matrix,
        _curves=curves,
        _drawn=drawn,
    )


def absolute_curve(evasion: Evasion) -> EvasionCurve:
    """The evasion as a curve; an average of models is refused, since damage under it is relative."""
    if isinstance(evasion, AverageEvasion):
        raise RiskError(
            f"found the average of {', '.join(evasion.models)}, which stands in for a detector: damage under it is "
            "relative, no probability, and has no cost; use detector_free_damage, or the curve of a detector"
        )
    return as_curve(evasion)


def _damage(values: Floats, distances: Floats, curves: Sequence[Evasion], level: float, *, exact: bool) -> Estimate:
    if exact and np.isin(values, (0.0, 1.0)).all():
        return proportion(int(values.sum()), values.size, level=level)
    grouped = _Grouped.of(distances, _groups(distances[None], distances))
    lows = grouped.values(curves)
    highs = grouped.values(curves, bound="high") if _monotone(curves[:1]) else lows
    low, high = _weighted_limits(lows, highs, grouped.counts, 0.0, level)
    return _estimate(
        float(values.mean()), low, high, level, values.size, "Gaffke" if exact else "Gaffke, fitted evasion"
    )


def _groups(rows: Floats, by: Floats) -> Indices:
    """Group of each column of (rows, samples): equal distances, or `_GROUPS` groups of neighbours in `by`."""
    different, group = np.unique(rows, axis=1, return_inverse=True)
    if different.shape[1] > _GROUPS:
        group = np.empty(by.size, np.intp)
        group[np.argsort(by, kind="stable")] = np.arange(by.size) * _GROUPS // by.size
    return group.reshape(-1)


def _weighted_limits(lows: Floats, highs: Floats, counts: Floats, least: float, level: float) -> tuple[float, float]:
    """Quantiles of the randomly weighted mean; the unobserved sample has `least` below and 1 above."""
    tail = (1 - level) / 2
    weights = np.append(counts, 1.0)
    low, high = (
        Mixture(np.column_stack([values, np.full(len(values), unobserved)]), weights).quantile(p)
        for values, unobserved, p in ((lows, least, tail), (highs, 1.0, 1 - tail))
    )
    return low, high


def _estimate(value: float, low: float, high: float, level: float, n: int, method: str) -> Estimate:
    return Estimate(value, min(low, value), max(high, value), level, n, method)


def shares_of_best(drawn: Floats) -> list[float]:
    """Share of draws in which each model (column) has the least damage; ties are split equally."""
    best = drawn == drawn.min(axis=1, keepdims=True)
    return [float(share) for share in (best / best.sum(axis=1, keepdims=True)).mean(axis=0)]


# Drawing


def _drawn(matrix: Floats, curves: Sequence[Evasion], rng: np.random.Generator) -> Floats:
    """Means of Psi over weighted samples, (draws, models)."""
    sizes, index = np.unique(matrix, return_inverse=True)
    index = index.reshape(matrix.shape)
    parts = [
        _means(weights, values_of(some, sizes)[:, index])
        for some, weights in _weighted(curves[:_WEIGHTS], matrix.shape, int(rng.integers(2**63)))
    ]
    return np.concatenate(parts)


def _monotone(curves: Sequence[Evasion]) -> list[MonotoneCurve]:
    """All curves if they are defined at their knots only, else none."""
    if not isinstance(curves[0], MonotoneCurve):
        return []
    return [curve for curve in curves if isinstance(curve, MonotoneCurve)]


def _one_sided(curves: Sequence[Evasion], sizes: Floats, bound: Literal["low", "high"]) -> Floats:
    """Values, (curves, sizes); for curves that are defined at their knots only, one of their bounds."""
    if not (monotone := _monotone(curves)):
        return values_of(curves, sizes)
    return np.stack([curve.bounds(sizes)[bound == "high"] for curve in monotone])


def _means(weights: Floats, values: Floats) -> Floats:
    """Weights (curves, draws, samples + 1) and values (curves, models, samples) -> means (curves * draws, models)."""
    means = weights[:, :, :-1] @ values.transpose(0, 2, 1)
    return means.reshape(-1, values.shape[1])


def _weighted(
    curves: Sequence[Evasion], shape: tuple[int, ...], seed: int
) -> Iterator[tuple[Sequence[Evasion], Floats]]:
    """Blocks of curves, each with the weights of the samples and of the unobserved one."""
    rng = np.random.default_rng(seed)
    n_models, n = shape
    draws = -(-_WEIGHTS // len(curves))
    n_curves = max(1, _BLOCK_CELLS // ((draws + n_models) * n))
    n_draws = max(1, min(draws, _BLOCK_CELLS // n))
    for first in range(0, len(curves), n_curves):
        some = curves[first : first + n_curves]
        for start in range(0, draws, n_draws):
            weights = rng.standard_exponential((len(some), min(n_draws, draws - start), n + 1))
            weights /= weights.sum(axis=2, keepdims=True)
            yield some, weights
