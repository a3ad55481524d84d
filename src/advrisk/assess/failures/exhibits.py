"""What is left to show of failures, where inputs were kept: clean ones beside those that made the model err."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from advrisk.assess.changes import changes, n_changes
from advrisk.assess.failures.modes import Exhibit, Failure, FailureModes
from advrisk.core.errors import LedgerError
from advrisk.core.pictures import Array, Bounds, is_image, png
from advrisk.ledger.inputs import cell_inputs, read_bounds, read_inputs, shard_inputs
from advrisk.ledger.storage import Storage
from advrisk.risk.indicators.tensor import CLEAN


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
    return replace(shown, changes=changes(original, perturbed), n_changed=n_changes(original, perturbed))


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
