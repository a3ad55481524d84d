"""Many small segments into few, while others read.

The merged segment is written under a name that nobody looks at; then one rename makes it appear, and with it, as it
says so itself, everything that it replaces disappears. Only then are those deleted. Whenever this ends, each row is
seen exactly once, and the next writer tidies up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.core.shortage import refuse_shortage, shortage_named
from advrisk.ledger.inputs import deleted_inputs
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.manifest import FILE, Replaces, inputs_of, number_of, read_replaces
from advrisk.ledger.rewriting import read_tables, refuse_damaged, together
from advrisk.ledger.segments import publish, segment_folders, tidy
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.copies import Place, writable_storage
from advrisk.ledger.verified import whole_segments

LARGEST_MB = 256


@dataclass(frozen=True)
class Compacted:
    """What became of the segments; `n_void` rows were of cells that had been run again, and are gone."""

    n_before: int
    n_after: int
    n_void: int


def compact(place: Place, *, largest_mb: float = LARGEST_MB) -> Compacted:
    """Merge neighbouring segments until they are about so large; readers notice nothing, other writers must wait."""
    with writable_storage(place, inputs=()) as opened:
        storage = Ledger.open(opened).storage
        with locked(storage.folder):
            tidy(storage)
            return merge_neighbours(storage, int(largest_mb * 2**20))


@shortage_named()
def merge_neighbours(storage: Storage, largest: int) -> Compacted:
    """Merge neighbouring segments until they have about so many bytes. Only the holder of the lock may do this."""
    ledger = storage.ledger
    before, n_void = whole_segments(ledger), 0
    try:
        for group in _groups(before, largest):
            n_void += _merge(storage, group)
    except OSError as error:
        refuse_shortage(error)
        raise LedgerError(f"{ledger}: segments cannot be merged: {error.strerror or error}") from None
    return Compacted(len(before), len(segment_folders(ledger)), n_void)


def _groups(segments: Sequence[Path], largest: int) -> Iterator[list[Path]]:
    """Neighbours that are not larger than that together, where there are at least two."""
    group: list[Path] = []
    gathered = 0
    for segment in segments:
        size = sum(file.stat().st_size for file in segment.iterdir())
        if gathered + size > largest or _is_unfinished(segment):
            yield from [group] if len(group) > 1 else []
            group, gathered = [], 0
        if not _is_unfinished(segment):
            group.append(segment)
            gathered += size
    yield from [group] if len(group) > 1 else []


def _is_unfinished(segment: Path) -> bool:
    """Whether outcomes were deleted from a segment without digests: its cells are run again; not to be forgotten."""
    there = {file.name for file in segment.iterdir()}
    return "cells.parquet" in there and not there & {"outcomes.parquet", FILE}


def _merge(storage: Storage, group: Sequence[Path]) -> int:
    """Put one segment in the place of several; returns how many void rows are gone."""
    manifests = dict(zip((segment.name for segment in group), refuse_damaged(group), strict=True))
    inputs = inputs_of(manifests, deleted_inputs(storage.folder))
    tables, n_void = together([read_tables(segment) for segment in group])
    earlier = [name for segment in group for name in read_replaces(segment).segments]  # for who still reads those
    replaces = Replaces((*earlier, *(segment.name for segment in group)))
    publish(storage, tables, number=number_of(group[-1].name), replaces=replaces, inputs=inputs)
    tidy(storage)
    return n_void
