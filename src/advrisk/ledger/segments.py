"""Segments: the unit of file. A segment is a folder of Parquet files that appears all at once.

    ledger/segments/00000017-3f2a9c1b/{outcomes,outputs,cells,…}.parquet

It is written under a name that readers do not look at, made durable, and renamed. Numbers rise, so
of two rows for the same thing the one in the later segment counts.
"""

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from advrisk.core.errors import LedgerError
from advrisk.ledger.tables import SCHEMA_VERSION, TABLES, VERSION_KEY

FOLDER = "segments"
_UNFINISHED = ".unfinished-"
_NAME = re.compile(r"\d{8}-[0-9a-f]{8}")


def segment_folders(ledger: Path) -> list[Path]:
    """The published segments, oldest first."""
    folder = ledger / FOLDER
    try:
        return sorted(entry for entry in folder.iterdir() if _NAME.fullmatch(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise LedgerError(f"{folder}: cannot be read: {error.strerror}") from None


def publish(ledger: Path, tables: Mapping[str, pa.Table]) -> Path:
    """Write the tables as one new segment: after a crash it is there in full, or not at all."""
    folder = ledger / FOLDER
    existing = segment_folders(ledger)
    number = int(existing[-1].name.partition("-")[0]) + 1 if existing else 1
    name = f"{number:08d}-{uuid.uuid4().hex[:8]}"
    unfinished = folder / f"{_UNFINISHED}{name}"
    try:
        unfinished.mkdir(parents=True)
        for table_name, table in tables.items():
            _write(unfinished / f"{table_name}.parquet", table_name, table)
        _make_durable(unfinished)
        unfinished.rename(folder / name)
        _make_durable(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(unfinished)
        raise LedgerError(
            f"{ledger}: a segment could not be written ({error.strerror or error}); what was published before is "
            "intact. Make room or mend the disk, then run the same command again"
        ) from error
    return folder / name


def remove_unfinished(ledger: Path) -> None:
    """Delete what a killed writer left behind. Only the holder of the lock may do this."""
    for entry in (ledger / FOLDER).glob(f"{_UNFINISHED}*"):
        shutil.rmtree(entry)


def _write(path: Path, name: str, table: pa.Table) -> None:
    metadata = {**(table.schema.metadata or {}), VERSION_KEY: str(SCHEMA_VERSION).encode()}
    floats = [field.name for field in TABLES[name] if pa.types.is_floating(field.type)]
    with open(path, "wb") as file:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            file,
            compression="lz4",  # measured: as small as snappy here and faster; zstd halves the speed
            use_dictionary=[field.name for field in TABLES[name] if field.name not in floats],
            write_statistics=False,
        )
        file.flush()
        os.fsync(file.fileno())


def _make_durable(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
