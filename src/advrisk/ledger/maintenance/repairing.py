"""Taking what is damaged out of a ledger, so that the next run does those cells again, and nothing else.

Nothing is deleted: segments and inputs go to `ledger/aside`. What is sound in a damaged segment is published again in
its place. Whenever this ends, the ledger can be read, and a second repair finishes the first.
"""

from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.ledger import manifest
from advrisk.ledger.history import remove, settle
from advrisk.ledger.inputs import note_deleted
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.maintenance.checking import Inspection, inspect
from advrisk.ledger.manifest import Replaces, Stamp, number_of
from advrisk.ledger.rewriting import AFTER_CELL, OF_CELL, Tables, cells_in, read_tables, without_cells
from advrisk.ledger.segments import last_number, move_aside, place_aside, publish, tidy
from advrisk.ledger.sync.copies import Place, writable_storage
from advrisk.ledger.tables import TABLES

_QUESTION = ("models", "arms", "samples")  # every run compares these with its study, and adds what is not right


def repair(place: Place) -> Inspection:
    """Check a run, and move aside what is damaged; returns what was found before."""
    with writable_storage(place, verify=False) as opened:
        storage = Ledger.open(opened).storage
        with locked(storage.folder):
            found = inspect(storage)
            if found.damaged:
                try:
                    _take_out(found)
                except OSError as error:
                    raise LedgerError(
                        f"{error.filename or storage.ledger}: cannot be moved aside: {error.strerror or error}; make "
                        "room or mend the disk, then repair again"
                    ) from None
    return found


def _take_out(found: Inspection) -> None:
    # First of all: from here on, the history requires no segment that may be moved aside.
    copies_and_damaged = {*found.copies, *(name for name, faults in found.faults.items() if faults)}
    settle(found.ledger, {name: one for name, one in found.manifests.items() if name not in copies_and_damaged})
    for path in found.inputs:
        path.replace(place_aside(found.ledger, path.relative_to(found.ledger.parent)))
    for name in found.copies:
        move_aside(found.ledger, name)
    known = _cells_left(found)
    for segment in found.segments:
        if segment.name not in found.copies:
            _mend(found, segment, known)
    # Many segments tell of the clean inputs of a shard; that these are gone is known from now on. Not before one of
    # their cells is taken out, which makes them again: a repair that was stopped before that must find them lost.
    lost = [path for path in found.lost_inputs if path.parent.name == "shards"]
    note_deleted(found.ledger.parent, lost, after=last_number(found.ledger))
    tidy(found.storage)


def _cells_left(found: Inspection) -> set[str]:
    """The cells, and the recipes, that scores and measures may be about after the repair."""
    left: set[str] = set()
    for segment in found.segments:
        if segment.name in found.copies:
            continue
        tables = _sound(found, segment, ("cells", "arms"))
        left |= cells_in(tables)
        left |= set(tables["arms"]["recipe"].to_pylist()) if "arms" in tables else set()
    return left - found.cells


def _sound(found: Inspection, segment: Path, names: tuple[str, ...] = tuple(TABLES)) -> Tables:
    """The tables of a segment that are as they were written; of cells all tables, or none."""
    faults = found.faults[segment.name]
    lost = {name.removesuffix(".parquet") for name in faults}
    if manifest.FILE in faults:  # nothing can be verified any more
        lost |= TABLES.keys() - set(_QUESTION)
    if lost & set(OF_CELL):
        lost |= set(OF_CELL)
    wanted = [name for name in names if name not in lost]
    if not faults:
        return read_tables(segment, wanted)
    tables: Tables = {}
    for name in wanted:
        try:
            tables |= read_tables(segment, [name])
        except LedgerError:
            continue  # a table that cannot be read goes aside with the segment
    return tables


def _mend(found: Inspection, segment: Path, known: set[str]) -> None:
    """Publish what is sound of a segment in its place, and move it aside; one without a fault is left as it is."""
    tables = _sound(found, segment, AFTER_CELL)
    void = {cell for table in tables.values() for cell in table["cell"].unique().to_pylist() if cell not in known}
    own = cells_in(_sound(found, segment, ("cells",)))
    strange = _strange_rows(found, segment)
    if not found.faults[segment.name] and not void and not own & found.cells and not strange:
        return
    _clear_merged(found, segment)
    whole = _sound(found, segment)
    left = without_cells(without_cells(whole, found.cells | strange, OF_CELL), void, AFTER_CELL)
    if not left:
        remove(found.ledger, [segment.name])
        move_aside(found.ledger, segment.name)
        return
    told = found.manifests[segment.name]
    inputs = _inputs_left(dict(told.inputs) if told else {}, found.cells if "cells" in left else own | found.cells)
    replaces = Replaces((segment.name,), aside=True)
    publish(found.storage, left, number=number_of(segment.name), replaces=replaces, inputs=inputs)
    move_aside(found.ledger, segment.name)


def _clear_merged(found: Inspection, segment: Path) -> None:
    """Move aside what a segment was merged from, where that is still there: without it, it would be read again."""
    try:
        merged = manifest.read_replaces(segment).segments
    except LedgerError:
        return  # then those are read, and were looked at
    read = {one.name for one in found.segments}
    for name in merged:
        if name not in read and (segment.parent / name).is_dir():
            move_aside(found.ledger, name)


def _strange_rows(found: Inspection, segment: Path) -> set[str]:
    """Cells to be done again of which a segment has rows, but which it does not say are finished."""
    tables = _sound(found, segment, ("outcomes", "outputs"))
    there = {cell for table in tables.values() for cell in table["cell"].unique().to_pylist()}
    return there & found.cells


def _inputs_left(inputs: dict[str, Stamp], gone: set[str]) -> dict[str, Stamp]:
    return {path: stamp for path, stamp in inputs.items() if Path(path).stem not in gone}
