"""Bands of samples with similar weight.

A branch with `where`, or a stratum that is more frequent in the deployment than in the samples, depends on few samples
of large weight. Pooled with hundreds of others, their number and spread would be hidden, so each band has its own.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.indicators.evaluation import Evaluated
from advrisk.risk.indicators.tensor import Flags, Floats

_RATIO = 3.0  # upper limit of the ratio of weights within a band
_ROUNDING = 1e-12  # smaller spreads, relative to the values, are rounding


@dataclass(frozen=True, eq=False)
class SampleBand:
    """A band of samples, with statistics for each row of leaf weights."""

    columns: Flags | None  # which samples; None: all
    share: Floats  # their total weight; the shares of all bands sum to 1
    value: Floats  # their mean
    error: Floats  # standard error of that mean; infinite if it cannot be estimated
    n: Floats  # effective number of samples: degrees of freedom plus one
    alone: Floats  # root of the sum of squared weights of samples that are the only ones of their kind


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contribution of each sample to a mean, or to a difference of two: the part expected of its kind, and its own."""

    expected: Floats
    own: Floats
    weight: Floats

    @classmethod
    def of(cls, evaluated: Evaluated, weights: Floats) -> "Contributions":
        """Contributions under these leaf weights."""
        own = weights @ evaluated.residual
        return cls(weights @ evaluated.parts - own, own, (weights @ evaluated.of_group) @ evaluated.share)

    def minus(self, other: "Contributions") -> "Contributions":
        """Contributions to the difference, on the same samples."""
        return Contributions(self.expected - other.expected, self.own - other.own, self.weight)

    def pseudo_values(self, band: SampleBand, value: float, least: float, most: float) -> tuple[Floats, float, float]:
        """Pseudo-values of a band's mean `value`, and the least and greatest possible for an unobserved sample.

        A sample's loss, or difference of losses, lies between `least` and `most`. The mean of the pseudo-values is
        `value`. If all samples have equal weight and are of one kind, they are the losses themselves.
        """
        used = self.weight > 0 if band.columns is None else (self.weight > 0) & band.columns
        each = int(used.sum()) / float(band.share[0])
        own, expected, weight = self.own[used], self.expected[used], self.weight[used]
        values = value + each * (own - own.mean())
        low, high = value + each * (weight * least - expected).min(), value + each * (weight * most - expected).max()
        return values, min(float(low), float(values.min())), max(float(high), float(values.max()))


def bands(evaluated: Evaluated, weights: Floats, typical: Floats) -> tuple[SampleBand, ...]:
    """Bands under rows of weights (rows, leaves); the weights of samples under `typical` determine the bands."""
    return tuple(_band(evaluated, weights, columns) for columns in _columns(evaluated, typical))


def _columns(evaluated: Evaluated, typical: Floats) -> list[Flags | None]:
    """Samples with similar weights; those without weight join the lightest, as they inform strata effects."""
    weight = (typical @ evaluated.of_group) @ evaluated.share
    weighs = weight > 0
    most = weight[weighs].max(initial=0.0)
    if not weighs.any() or most <= _RATIO * weight[weighs].min() * (1 + _ROUNDING):
        return [None]
    band: NDArray[np.int64] = np.zeros(weight.shape, dtype=np.int64)
    band[weighs] = np.floor(np.log(most / weight[weighs]) / math.log(_RATIO) + _ROUNDING).astype(np.int64)
    band[~weighs] = band.max()
    return [band == number for number in np.unique(band)]


def _band(evaluated: Evaluated, weights: Floats, columns: Flags | None) -> SampleBand:
    sums, of_groups = evaluated.sums(columns), weights @ evaluated.of_group
    share = of_groups @ sums.share
    squares, free, alone = (_squared(of_groups, one) for one in (sums.overlap, sums.free, sums.alone))
    most = (evaluated.bounds[1] - evaluated.bounds[0]) / 2  # the largest standard deviation of a value within bounds
    with np.errstate(invalid="ignore"):
        variance = _squared(weights, sums.covariance) + np.where(alone > 0, alone * most**2, 0.0)
    scale = np.abs(weights) @ np.abs(np.nan_to_num(evaluated.mean))
    error = np.where(np.sqrt(variance) > _ROUNDING * scale, np.sqrt(variance), 0.0)
    return SampleBand(
        columns=columns,
        share=share,
        value=_ratio(weights @ sums.parts, share),
        error=_ratio(error, share),
        n=1 + _ratio(free * share**2, squares**2),
        alone=np.sqrt(alone),
    )


def _squared(weights: Floats, products: Floats) -> Floats:
    """Sum of squares of weights x values for each row of weights, from the sums of products of values."""
    return np.asarray(np.maximum(((weights @ products) * weights).sum(axis=1), 0.0))


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
