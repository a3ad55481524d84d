"""What is left to show of failures, where inputs were kept: clean ones beside those that made the model err."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from advrisk.assess.failures.modes import Change, Exhibit, Failure, FailureModes
from advrisk.core.errors import LedgerError
from advrisk.core.pictures import Array, Bounds, is_image, png
from advrisk.ledger.inputs import cell_inputs, read_bounds, read_inputs, shard_inputs
from advrisk.ledger.storage import Storage
from advrisk.risk.indicators.tensor import CLEAN

_FEATURES = 5  # of a table's row, the most changed first


def with_exhibits(storage: Storage, found: FailureModes) -> FailureModes:
    """The same failures with what was kept of their inputs."""
    return replace(found, exhibits=dict(_exhibits(storage, found)))


def _exhibits(storage: Storage, found: FailureModes) -> Iterator[tuple[Failure, Exhibit]]:
    store, bounds = _Store(storage), read_bounds(storage.folder)
    for mode in found.modes:
        for one in mode.failures:
            yield one, _exhibit(store.original(one), None if one.arm == CLEAN else store.perturbed(one), bounds)


def _exhibit(original: Array | None, perturbed: Array | None, bounds: Bounds) -> Exhibit:
    clean, changed = (png(x, bounds) if x is not None and is_image(x) else b"" for x in (original, perturbed))
    shown = Exhibit(clean, changed, kept=perturbed is not None)
    if original is None or perturbed is None or is_image(original):
        return shown
    return replace(shown, changes=_changes(original, perturbed), n_changed=int((original != perturbed).sum()))


def _changes(original: Array, perturbed: Array) -> tuple[Change, ...]:
    """The features that changed most, in units of what they were where that is not 0."""
    before, after = (x.astype(np.float64).ravel() for x in (original, perturbed))
    moved = np.abs(after - before) / np.where(before == 0, 1.0, np.abs(before))
    order = np.argsort(-moved, kind="stable")[: min(_FEATURES, int((before != after).sum()))]
    return tuple(Change(int(place), float(before[place]), float(after[place])) for place in order)


class _Store:
    """Inputs beside a ledger; each file is read once."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._read = storage, dict[Path, dict[str, Array]]()

    def original(self, failure: Failure) -> Array | None:
        return self._input(shard_inputs(self._storage.folder, failure.shard), failure.sample)

    def perturbed(self, failure: Failure) -> Array | None:
        return self._input(cell_inputs(self._storage.folder, failure.cell), failure.sample)

    def _input(self, path: Path, sample: str) -> Array | None:
        if path not in self._read:
            try:
                self._read[path] = read_inputs(self._storage.fetch(path))
            except LedgerError:  # not kept, or deleted
                self._read[path] = {}
        return self._read[path].get(sample)
