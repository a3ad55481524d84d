"""Rows count only as they were written: all segments that were published, each file with the digest it had then.

A file is hashed once, as long as its size, its time and its place on the disk stay what they are. Segments of versions
that wrote no digests are read as they are.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.files import regular
from advrisk.core.shortage import refuse_shortage
from advrisk.ledger import history
from advrisk.ledger.history import later_history, read_history
from advrisk.ledger.manifest import ADVICE, FILE, Manifest, Stamp, read_manifest, stamp_file
from advrisk.ledger.rewriting import is_stamped
from advrisk.ledger.segments import FOLDER, listed_segments

LOST_ADVICE = (
    "put the folder back from a backup, or let `advrisk ledger check RUN --repair` remove it from the history; "
    "`advrisk run` then does its cells again"
)
_State = tuple[int, int, int]  # size, time of change and place on the disk


def whole_segments(ledger: Path) -> list[Path]:
    """The published segments, oldest first; a LedgerError where one is lost, or is not the one that was published."""
    published = read_history(ledger)  # before the segments are listed: what it names is there, or was replaced
    segments, replaced = listed_segments(ledger)
    if lost := published.lost({segment.name for segment in segments} | replaced):
        more = f", and {len(lost) - 1} more" if lost[1:] else ""
        raise LedgerError(f"{ledger / FOLDER / lost[0]}: is lost{more}: it was published; {LOST_ADVICE}")
    states = {segment: file_state(segment / FILE) for segment in segments}
    manifests = {segment: None if state is None else _manifest(segment, state) for segment, state in states.items()}
    published = later_history(ledger, published, manifests.values())
    for segment, manifest in manifests.items():
        if published.lacks_lines(manifest):
            raise LedgerError(f"{ledger / history.FILE}: was altered, or lines are missing; {ADVICE}")
        if published.unlike(segment.name, manifest) and segment.is_dir():  # else it was merged meanwhile
            raise LedgerError(f"{segment / FILE}: is not the one that was published; {ADVICE}")
    return segments


def refuse_altered(segments: Iterable[Path], tables: Sequence[str]) -> None:
    """Raise a LedgerError where a table of these segments is not what was written."""
    for segment in segments:
        state = file_state(segment / FILE)
        manifest = None if state is None else _manifest(segment, state)
        for name in (f"{table}.parquet" for table in tables):
            path = segment / name
            now = file_state(path)
            if now is None:
                if manifest is not None and name in manifest.files and segment.is_dir():
                    raise LedgerError(f"{path}: is missing; {ADVICE}")
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


def file_state(path: Path) -> _State | None:
    """Size, time of change and place on the disk: a file that keeps them need not be read again; None if it is gone."""
    try:
        found = regular(path).stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        refuse_shortage(error)
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
    except (pa.ArrowException, OSError) as error:
        refuse_shortage(error)
        return False


@lru_cache(maxsize=262_144)
def _is_as_written(path: Path, told: Stamp, state: _State) -> bool:
    del state
    try:
        return stamp_file(path) == told
    except OSError as error:
        refuse_shortage(error)
        raise LedgerError(f"{path}: cannot be read: {error.strerror or error}") from None
