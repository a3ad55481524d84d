"""The samples that a risk is made of, in bands of like weight.

A branch with `where`, or a stratum that the deployment has more of than the samples, rests on few samples of great
weight. Beside hundreds of others their number and their spread would not be seen: so each band has its own.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.indicators.evaluation import Evaluated
from advrisk.risk.indicators.tensor import Flags, Floats

_ALIKE = 3.0  # samples of one band weigh less than so many times each other
_NOTHING = 1e-12  # a spread below it, relative to the values, is rounding


@dataclass(frozen=True, eq=False)
class SampleBand:
    """Some of the samples; everything for each row of weights of leaves."""

    columns: Flags | None  # which samples; None: all
    share: Floats  # what they weigh together: those of all bands sum to 1
    value: Floats  # their mean
    error: Floats  # standard error of that mean; infinite where nothing is known of it
    n: Floats  # how many samples of one group would leave as many degrees of freedom, plus one
    alone: Floats  # root of the sum of squared weights, of samples that are the only ones of their kind


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each sample adds to a mean, or to a difference of two: what is expected of its kind, and what is its own."""

    expected: Floats
    own: Floats
    weight: Floats

    @classmethod
    def of(cls, found: Evaluated, weights: Floats) -> "Contributions":
        """Under these weights of leaves."""
        own = weights @ found.residual
        return cls(weights @ found.parts - own, own, (weights @ found.of_group) @ found.share)

    def minus(self, other: "Contributions") -> "Contributions":
        """Of the difference, on the same samples."""
        return Contributions(self.expected - other.expected, self.own - other.own, self.weight)

    def pseudo_values(self, band: SampleBand, value: float, least: float, most: float) -> tuple[Floats, float, float]:
        """What each sample of a band says of its mean `value`; the least and the most that one not seen may say.

        A sample's loss, or difference of losses, lies between `least` and `most`. The mean of the pseudo-values is
        `value`; where all samples weigh alike and are of one kind they are the losses themselves.
        """
        there = self.weight > 0 if band.columns is None else (self.weight > 0) & band.columns
        each = int(there.sum()) / float(band.share[0])
        own, expected, weight = self.own[there], self.expected[there], self.weight[there]
        values = value + each * (own - own.mean())
        low, high = value + each * (weight * least - expected).min(), value + each * (weight * most - expected).max()
        return values, min(float(low), float(values.min())), max(float(high), float(values.max()))


def bands(found: Evaluated, weights: Floats, typical: Floats) -> tuple[SampleBand, ...]:
    """The bands under rows of weights (rows, leaves); what each sample weighs under `typical` decides its band."""
    return tuple(_band(found, weights, columns) for columns in _columns(found, typical))


def _columns(found: Evaluated, typical: Floats) -> list[Flags | None]:
    """Samples with like weights; those of no weight are with the lightest, for they may tell of strata."""
    weight = (typical @ found.of_group) @ found.share
    there = weight > 0
    most = weight[there].max(initial=0.0)
    if not there.any() or most <= _ALIKE * weight[there].min() * (1 + _NOTHING):
        return [None]
    place: NDArray[np.int64] = np.zeros(weight.shape, dtype=np.int64)
    place[there] = np.floor(np.log(most / weight[there]) / math.log(_ALIKE) + _NOTHING).astype(np.int64)
    place[~there] = place.max()
    return [place == one for one in np.unique(place)]


def _band(found: Evaluated, weights: Floats, columns: Flags | None) -> SampleBand:
    sums, of_groups = found.sums(columns), weights @ found.of_group
    together = of_groups @ sums.share
    squares, free, alone = (_squared(of_groups, one) for one in (sums.overlap, sums.free, sums.alone))
    unknown = (found.bounds[1] - found.bounds[0]) / 2  # no value between bounds has a larger standard deviation
    with np.errstate(invalid="ignore"):
        variance = _squared(weights, sums.covariance) + np.where(alone > 0, alone * unknown**2, 0.0)
    scale = np.abs(weights) @ np.abs(np.nan_to_num(found.mean))
    error = np.where(np.sqrt(variance) > _NOTHING * scale, np.sqrt(variance), 0.0)
    return SampleBand(
        columns=columns,
        share=together,
        value=_ratio(weights @ sums.parts, together),
        error=_ratio(error, together),
        n=1 + _ratio(free * together**2, squares**2),
        alone=np.sqrt(alone),
    )


def _squared(weights: Floats, products: Floats) -> Floats:
    """Of weights x something, summed over samples, for each row of weights; `products` holds the sums for two each."""
    return np.asarray(np.maximum(((weights @ products) * weights).sum(axis=1), 0.0))


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
