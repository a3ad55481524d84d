"""Evasion curves that are given rather than fitted: a threshold, and the average of the compared models."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from advrisk.risk.evasion.curve import Floats, Known, checked_sizes, paired_distances


@dataclass(frozen=True, eq=False)
class AverageEvasion(Known):
    """Psi_avg: the share of the compared models' distances that are strictly greater."""

    models: tuple[str, ...]
    distances: Floats  # of all models together, ascending

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        not_greater = np.searchsorted(self.distances, checked_sizes(sizes, "sizes"), side="right")
        return np.asarray((self.distances.size - not_greater) / self.distances.size, dtype=np.float64)


@dataclass(frozen=True)
class ThresholdEvasion(Known):
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
    return average_of(models, matrix)


def average_of(models: tuple[str, ...], distances: Floats) -> AverageEvasion:
    """Psi_avg of distances that are checked already."""
    pooled = np.sort(distances, axis=None)
    pooled.setflags(write=False)
    return AverageEvasion(models, pooled)


def threshold(tau: float) -> ThresholdEvasion:
    """Psi(size) = 1 for size <= tau, else 0; damage under it is the success ratio at tau."""
    return ThresholdEvasion(float(checked_sizes(tau, "tau")))
