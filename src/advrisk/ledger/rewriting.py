"""Segments as tables in memory: read with their digests verified, rid of rows, put together."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from advrisk.core.errors import LedgerError
from advrisk.core.shortage import ShortageError, refuse_shortage
from advrisk.ledger.manifest import (
    ADVICE,
    FILE,
    REPLACES_FILE,
    Manifest,
    Stamp,
    read_manifest,
    read_replaces,
    stamp_file,
)
from advrisk.ledger.tables import SCHEMA_VERSION, STAMPED_KEY, TABLES, VERSION_KEY

Tables = dict[str, pa.Table]

OF_CELL = ("cells", "outcomes", "outputs")  # published together: all of a cell, or nothing
AFTER_CELL = ("scores", "measures")  # published later, about cells that are there


def read_tables(segment: Path, names: Iterable[str] = tuple(TABLES)) -> Tables:
    """The tables of a segment in today's columns; what an earlier version did not have is null."""
    files = {name: segment / f"{name}.parquet" for name in names}
    tables = {name: _read(path, name) for name, path in files.items() if path.is_file()}
    if not segment.is_dir():  # else what is gone would be taken for what never was
        raise LedgerError(f"{segment}: was taken away while it was read; try again")
    return tables


def faults_of(segment: Path) -> tuple[dict[str, str], Manifest | None]:
    """What is wrong with the files of a segment, by name; and its manifest, if it has one that can be read."""
    try:
        manifest = read_manifest(segment)
    except ShortageError:
        raise
    except LedgerError as error:
        return {FILE: str(error).partition("; ")[0].removeprefix(f"{segment / FILE}: ")}, None
    there = {entry.name for entry in segment.iterdir()} - {FILE}
    if manifest is None:
        tables = [name for name in sorted(there) if name.endswith(".parquet")]
        found = {name: _unreadable(segment / name) for name in tables}
        if any(not found[name] and is_stamped(segment / name) for name in tables):  # else an earlier version wrote it
            found[FILE] = "is missing"
    else:
        found = {name: _unlike(segment / name, stamp) for name, stamp in manifest.files.items()}
        found |= dict.fromkeys(sorted(there - manifest.files.keys()), "does not belong to the segment")
        if REPLACES_FILE in there - manifest.files.keys():  # which readers would believe
            found[REPLACES_FILE] = "was altered: the segment was written without it"
    if REPLACES_FILE in there and not found.get(REPLACES_FILE):
        found[REPLACES_FILE] = _not_replacing(segment)
    return {name: fault for name, fault in found.items() if fault}, manifest


def is_stamped(path: Path) -> bool:
    """Whether a version that writes digests wrote the table."""
    return STAMPED_KEY in (pq.read_schema(path).metadata or {})


def _not_replacing(segment: Path) -> str:
    """Why the list of what a segment replaces is none, although it is as it was written; empty where it is one."""
    try:
        read_replaces(segment)
    except ShortageError:
        raise
    except LedgerError as error:
        return str(error).partition("; ")[0].removeprefix(f"{segment / REPLACES_FILE}: ")
    return ""


def refuse_damaged(segments: Iterable[Path]) -> list[Manifest | None]:
    """The manifests of whole segments; damage that is copied would look whole from then on."""
    manifests = []
    for segment in segments:
        faults, manifest = faults_of(segment)
        if faults:
            name, fault = next(iter(faults.items()))
            raise LedgerError(f"{segment / name}: {fault}; {ADVICE}")
        manifests.append(manifest)
    return manifests


def without_cells(tables: Mapping[str, pa.Table], cells: Collection[str], names: Iterable[str] = TABLES) -> Tables:
    """The tables without the rows of these cells; `names` are those that lose them. One without a row is left out."""
    lose = set(names) if cells else set()
    kept = {name: _without(table, cells) if name in lose else table for name, table in tables.items()}
    return {name: table for name, table in kept.items() if table.num_rows}


def together(segments: Sequence[Mapping[str, pa.Table]]) -> tuple[Tables, int]:
    """Segments in their order as one, and how many rows no reader could see any more.

    Of a cell that was run several times the last one stays; scores and measures from before that go, too.
    """
    last = {cell: place for place, tables in enumerate(segments) for cell in cells_in(tables)}
    kept = []
    for place, tables in enumerate(segments):
        later = {cell for cell, at in last.items() if at > place}
        again = later & cells_in(tables)
        kept.append(without_cells(without_cells(tables, again, OF_CELL), later, AFTER_CELL))
    names = [name for name in TABLES if any(name in tables for tables in kept)]
    merged = {
        name: pa.concat_tables([tables[name] for tables in kept if name in tables]).unify_dictionaries()
        for name in names
    }
    return merged, n_rows(segments) - n_rows([merged])


def cells_in(tables: Mapping[str, pa.Table]) -> set[str]:
    """The finished cells among the rows of a segment."""
    return set(tables["cells"]["cell"].to_pylist()) if "cells" in tables else set()


def n_rows(segments: Iterable[Mapping[str, pa.Table]]) -> int:
    """Rows of all tables together."""
    return sum(table.num_rows for tables in segments for table in tables.values())


def _without(table: pa.Table, cells: Collection[str]) -> pa.Table:
    if "cell" not in table.column_names:
        return table
    lost = pc.is_in(table["cell"].cast(pa.string()), value_set=pa.array(sorted(cells), pa.string()))
    return table.filter(pc.invert(lost)) if pc.any(lost).as_py() else table


def _read(path: Path, name: str) -> pa.Table:
    try:
        table = pq.read_table(path, partitioning=None)
        version = int((table.schema.metadata or {}).get(VERSION_KEY, b"0"))
        if version > SCHEMA_VERSION:
            raise LedgerError(f"{path}: schema version {version} is newer than this program's {SCHEMA_VERSION}")
        columns = [
            table[field.name].cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in TABLES[name]
        ]
        return pa.table(columns, schema=TABLES[name])
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse_shortage(error)
        raise LedgerError(f"{path}: cannot be read as a table of a ledger: {error}; {ADVICE}") from None


def _unreadable(path: Path) -> str:
    """Why a table without a digest cannot be read; empty where it can. That is all there is to know of it."""
    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse_shortage(error)
        return f"cannot be read ({error})"
    return ""


def _unlike(path: Path, told: Stamp) -> str:
    """How a file differs from what was written; empty where it does not."""
    try:
        found = stamp_file(path)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        refuse_shortage(error)
        return f"cannot be read ({error.strerror})"
    if found == told:
        return ""
    if found.bytes < told.bytes:
        return f"is truncated: {found.bytes} of {told.bytes} bytes are left"
    return "was altered: its digest is not the one that was written down with it"
