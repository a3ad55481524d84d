"""Rows count only as they were written: before a file of a segment is read, it is held against its digest.

A file is hashed once, as long as its size, its time and its place on the disk stay what they are. Segments of versions
that wrote no digests are read as they are; files that are gone leave cells that were not run.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.files import regular
from advrisk.ledger.manifest import ADVICE, FILE, Manifest, Stamp, read_manifest, stamp_file
from advrisk.ledger.rewriting import is_stamped

_State = tuple[int, int, int]  # size, time of change and place on the disk


def refuse_altered(segments: Iterable[Path], tables: Sequence[str]) -> None:
    """Raise a LedgerError where a table of these segments is not what was written."""
    for segment in segments:
        state = _state(segment / FILE)
        manifest = None if state is None else _manifest(segment, state)
        for name in (f"{table}.parquet" for table in tables):
            path = segment / name
            if (now := _state(path)) is None:
                continue
            if manifest is None:
                if _is_stamped(path, now):
                    raise LedgerError(f"{segment / FILE}: is missing, which holds the digests; {ADVICE}")
                continue
            told = manifest.files.get(name)
            if told is None:
                raise LedgerError(f"{path}: does not belong to the segment; {ADVICE}")
            if not _is_as_written(path, told, now):
                raise LedgerError(f"{path}: was altered: its digest is not the one that was written down; {ADVICE}")


def _state(path: Path) -> _State | None:
    try:
        found = regular(path).stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    return found.st_size, found.st_mtime_ns, found.st_ino


@lru_cache(maxsize=65_536)
def _manifest(segment: Path, state: _State) -> Manifest | None:
    del state  # one that was written anew is read anew
    return read_manifest(segment)


@lru_cache(maxsize=262_144)
def _is_stamped(path: Path, state: _State) -> bool:
    """The same of a table that may be damaged: what cannot be read at all is an error of whoever reads it."""
    del state
    try:
        return is_stamped(path)
    except (pa.ArrowException, OSError):
        return False


@lru_cache(maxsize=262_144)
def _is_as_written(path: Path, told: Stamp, state: _State) -> bool:
    del state
    try:
        return stamp_file(path) == told
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror or error}") from None
