"""Evasion curves: the probability that a perturbation of a given size goes undetected.

Here are the curves and the check of the distances that they, and `damage`, are made from. Nothing
here knows where distances come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError

Floats = NDArray[np.float64]


class Evasion(Protocol):
    """Psi(size): the probability of *not* being detected; non-increasing, and 0 at inf.

    Any callable of this shape will do, a user's function too. An attack that found nothing has
    size inf and does no damage, so Psi(inf) = 0 whatever the detector.
    """

    def __call__(self, sizes: ArrayLike, /) -> Floats: ...


@dataclass(frozen=True, eq=False)
class AverageEvasion:
    """Psi_avg: the share of the compared models' distances that are strictly greater."""

    models: tuple[str, ...]
    distances: Floats  # of all models together, ascending

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        not_greater = np.searchsorted(self.distances, checked_sizes(sizes, "sizes"), side="right")
        return np.asarray((self.distances.size - not_greater) / self.distances.size, dtype=np.float64)


@dataclass(frozen=True)
class ThresholdEvasion:
    """Psi of a detector that sees every perturbation greater than `tau` and no other."""

    tau: float

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        return np.asarray((array <= self.tau) & (array < np.inf), dtype=np.float64)


def average(distances_by_model: Mapping[str, ArrayLike]) -> AverageEvasion:
    """Klemenc & Trittenbach, "Selecting Models based on the Risk of Damage Caused by Adversarial Attacks".

    Psi_avg(tau) = 1 - (1/J) sum_j ASR_j(tau): with no detector at hand, a perturbation counts as
    unnoticed as often as the compared models need a *strictly greater* one. (The paper's Algorithm 2
    leaves the count at ties open; its definition of W(tau) does not.)
    """
    models, matrix = paired_distances(distances_by_model)
    pooled = np.sort(matrix, axis=None)
    pooled.setflags(write=False)
    return AverageEvasion(models, pooled)


def threshold(tau: float) -> ThresholdEvasion:
    """Psi(size) = 1 for size <= tau, else 0; damage under it is the success ratio at tau."""
    return ThresholdEvasion(float(checked_sizes(tau, "tau")))


def paired_distances(distances_by_model: Mapping[str, ArrayLike]) -> tuple[tuple[str, ...], Floats]:
    """The models' names and their distances as one (models, samples) array."""
    if not distances_by_model:
        raise RiskError("no model was given: distances of at least one are needed")
    rows = {model: checked_distances(values, f"model {model!r}") for model, values in distances_by_model.items()}
    first, *others = rows
    for model in others:
        if rows[model].size != rows[first].size:
            raise RiskError(
                f"model {model!r} has {rows[model].size} distances and model {first!r} has {rows[first].size}; "
                "models are compared on the same samples in the same order"
            )
    return tuple(rows), np.stack(list(rows.values()))


def checked_distances(values: ArrayLike, what: str) -> Floats:
    """One distance per sample, at least one sample."""
    array = checked_sizes(values, what)
    if array.ndim != 1:
        raise RiskError(f"{what}: one distance per sample is needed, found an array of shape {array.shape}")
    if array.size == 0:
        raise RiskError(f"{what}: there is no distance; attack at least one sample")
    return array


def checked_sizes(values: ArrayLike, what: str) -> Floats:
    """An array of any shape whose numbers are at least 0; inf is one of them, nan is not."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"{what}: numbers are needed ({error})") from None
    wrong = ~(array >= 0)
    if wrong.any():
        index = tuple(int(axis) for axis in np.argwhere(wrong)[0])
        where = f" at index {', '.join(map(str, index))}" if index else ""
        raise RiskError(f"{what}: found {array[index]}{where}; a size is at least 0, and inf where no arm succeeded")
    return array
