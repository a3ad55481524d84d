"""Segments: the unit of file. A segment is a folder of Parquet files that appears all at once.

    ledger/segments/00000017-3f2a9c1b/{outcomes,outputs,cells,…}.parquet, segment.json

It is written under a name that readers do not look at, made durable, renamed, and added to the ledger's history
(`ledger.history`). Numbers rise, so of two rows for the same thing the one in the later segment counts. A segment may
take the place of others (`ledger.manifest`): from the moment it has its name, readers leave those out.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from advrisk.core.errors import LedgerError
from advrisk.core.files import make_durable
from advrisk.core.shortage import refuse_shortage
from advrisk.ledger import manifest
from advrisk.ledger.history import FILE as HISTORY_FILE
from advrisk.ledger.history import History, add_published, read_history
from advrisk.ledger.manifest import Manifest, Replaces, Stamp
from advrisk.ledger.storage import Storage
from advrisk.ledger.tables import SCHEMA_VERSION, STAMPED_KEY, TABLES, VERSION_KEY

FOLDER = "segments"
ASIDE = "aside"  # beside the segments: what was damaged
_UNFINISHED = ".unfinished-"
_RETIRED = ".retired-"


def segment_folders(ledger: Path) -> list[Path]:
    """The published segments, oldest first; those that another one takes the place of are left out."""
    return listed_segments(ledger)[0]


def listed_segments(ledger: Path) -> tuple[list[Path], set[str]]:
    """The published segments, oldest first, and the names of those that they take the place of."""
    while True:
        found = all_segments(ledger)
        try:
            replaced = {name for segment in found for name in manifest.read_replaces(segment).segments}
        except FileNotFoundError:  # it was replaced itself meanwhile
            continue
        return [segment for segment in found if segment.name not in replaced], replaced


def all_segments(ledger: Path) -> list[Path]:
    """All that bears the name of a segment, oldest first, also what another one takes the place of.

    A folder that changes while it is listed may lack both a new entry and an old one that it replaced. Two lists in
    a row that agree cannot.
    """
    folder = ledger / FOLDER
    before: list[str] | None = None
    try:
        while True:
            found = sorted(name for name in os.listdir(folder) if manifest.SEGMENT_NAME.fullmatch(name))
            if found == before:
                return [folder / name for name in found]
            before = found
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        refuse_shortage(error)
        raise LedgerError(f"{folder}: cannot be read: {error.strerror}") from None


def publish(
    storage: Storage,
    tables: Mapping[str, pa.Table | Path],
    *,
    number: int | None = None,
    replaces: Replaces | None = None,
    inputs: Mapping[str, Stamp] | None = None,
) -> Path:
    """Write the tables as one new segment: after a crash it is there in full, or not at all.

    The path of a table is that of a file by `write_table` in a `scratch_folder`; it is moved into the segment. One that
    `replaces` others says what it knows of `inputs`, and has the number of the last of those.
    """
    storage.refuse_writing()
    ledger = storage.ledger
    folder = ledger / FOLDER
    existing = all_segments(ledger)
    history = _complete_history(ledger, existing)
    if number is None:
        number = _last_number(existing) + 1
    name = f"{number:08d}-{uuid.uuid4().hex[:8]}"
    unfinished = folder / f"{_UNFINISHED}{name}"
    try:
        unfinished.mkdir(parents=True)
        files = {f"{one}.parquet": _put_table(unfinished / f"{one}.parquet", one, rows) for one, rows in tables.items()}
        if replaces is not None:
            files[manifest.REPLACES_FILE] = _put(unfinished / manifest.REPLACES_FILE, manifest.replaces_text(replaces))
        if inputs is None:
            inputs = manifest.kept_inputs(ledger.parent, tables.get("cells"))
        written = Manifest(files, inputs, after=history.head)
        _put(unfinished / manifest.FILE, manifest.manifest_text(written))
        make_durable(unfinished)
        unfinished.rename(folder / name)
        make_durable(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(unfinished)
        raise _unwritten(ledger, error) from error
    try:
        storage.push(folder / name)
    except BaseException:  # then it was never published
        retire(folder / name)
        raise
    add_published(ledger, history, {name: written.digest})
    return folder / name


def _complete_history(ledger: Path, existing: Iterable[Path]) -> History:
    """The history with lines for segments that have none: a killed writer's, and those of earlier versions."""
    history = read_history(ledger)
    required = history.required
    new: dict[str, str | None] = {}
    for segment in existing:
        if segment.name not in required:
            with contextlib.suppress(LedgerError):  # what is damaged is for a repair
                written = manifest.read_manifest(segment)
                new[segment.name] = None if written is None else written.digest
    return add_published(ledger, history, new)


@contextlib.contextmanager
def scratch_folder(ledger: Path) -> Iterator[Path]:
    """A folder on the disk of the segments that is gone afterwards; after a kill, the next writer removes it."""
    folder = ledger / FOLDER / f"{_UNFINISHED}{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise _unwritten(ledger, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_table(path: Path, name: str, pieces: Iterable[pa.Table]) -> None:
    """Write pieces of a table as they come, with only one of them in memory."""
    with open(path, "wb") as file:
        with pq.ParquetWriter(
            file,
            TABLES[name].with_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode(), STAMPED_KEY: b"1"}),
            compression="lz4",  # measured: as small as snappy here and faster; zstd halves the speed
            use_dictionary=[field.name for field in TABLES[name] if not pa.types.is_floating(field.type)],
            write_statistics=False,
        ) as writer:
            for piece in pieces:
                writer.write_table(piece)
        file.flush()
        os.fsync(file.fileno())


def last_number(ledger: Path) -> int:
    """The number of the last segment; 0 where there is none."""
    return _last_number(all_segments(ledger))


def _last_number(segments: Sequence[Path]) -> int:
    return manifest.number_of(segments[-1].name) if segments else 0


def tidy(storage: Storage) -> None:
    """Delete what a killed writer left behind, and what was replaced. Only the holder of the lock may do this."""
    ledger = storage.ledger
    merged = [manifest.read_replaces(segment) for segment in all_segments(ledger)]
    try:
        remove_unfinished(ledger)
        replaced = {name: one.aside for one in merged for name in one.segments}
        there = [name for name in replaced if (ledger / FOLDER / name).is_dir()]
        for name in there:
            move_aside(ledger, name) if replaced[name] else retire(ledger / FOLDER / name)
    except OSError as error:
        raise LedgerError(
            f"{error.filename or ledger}: what is not needed any more cannot be removed: {error.strerror or error}"
        ) from None
    if there:
        storage.drop(there)


def remove_unfinished(ledger: Path) -> None:
    """Delete what a killed writer left behind. Only the holder of the lock may do this."""
    for pattern in (f"{_UNFINISHED}*", f"{_RETIRED}*"):
        for entry in (ledger / FOLDER).glob(pattern):
            shutil.rmtree(entry)
    for left in ledger.glob(f".{HISTORY_FILE}.*"):
        left.unlink()


def move_aside(ledger: Path, name: str) -> Path:
    """Take a segment out of the ledger without deleting it."""
    target = place_aside(ledger, Path(name))
    (ledger / FOLDER / name).rename(target)
    make_durable(ledger / FOLDER)
    return target


def place_aside(ledger: Path, name: Path) -> Path:
    """A place for what was damaged, by its path; not that of something that went there before."""
    target = usual = ledger / ASIDE / name
    number = 1
    while target.exists():
        number += 1
        target = usual.with_name(f"{usual.name}.{number}")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def retire(segment: Path) -> None:
    """Delete a segment that was replaced. Its name goes first, so that who still reads it finds all of it, or none."""
    retired = segment.with_name(f"{_RETIRED}{segment.name}")
    segment.rename(retired)
    shutil.rmtree(retired)


def _put_table(path: Path, name: str, rows: pa.Table | Path) -> Stamp:
    if isinstance(rows, Path):
        rows.rename(path)
    else:
        write_table(path, name, [rows])
    return manifest.stamp_file(path)  # it is still in memory; to hash it takes a quarter as long as to write it


def _put(path: Path, text: str) -> Stamp:
    with open(path, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    return manifest.stamp_file(path)


def _unwritten(ledger: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"{ledger}: a segment could not be written ({error.strerror or error}); what was published before is intact. "
        "Make room or mend the disk, then run the same command again"
    )
