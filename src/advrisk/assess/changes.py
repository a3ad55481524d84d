"""What changed in a row of a table: the features that moved most."""

from dataclasses import dataclass

import numpy as np

from advrisk.core.pictures import Array

MOST = 5  # features, the most changed first


@dataclass(frozen=True)
class Change:
    """One feature of a row of a table."""

    feature: int
    before: float
    after: float


def changes(original: Array, perturbed: Array, most: int = MOST) -> tuple[Change, ...]:
    """The features that changed most, relative to their original value if that is not 0."""
    before, after = (x.astype(np.float64).ravel() for x in (original, perturbed))
    moved = np.abs(after - before) / np.where(before == 0, 1.0, np.abs(before))
    order = np.argsort(-moved, kind="stable")[: min(most, n_changes(original, perturbed))]
    return tuple(Change(int(index), float(before[index]), float(after[index])) for index in order)


def n_changes(original: Array, perturbed: Array) -> int:
    """The number of features that changed."""
    return int((original != perturbed).sum())
