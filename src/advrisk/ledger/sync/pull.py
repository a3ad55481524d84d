"""Pull a run from object storage into a local copy: fetch what is new, delete what was deleted there.

A local file counts as fetched while it has the size and the time of the remote one, which `mark` gives it. Segments are
single files on object storage, so which ones are here is written down in the copy.
"""

import errno
import json
import os
import shutil
import struct
import uuid
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.core.files import whole_file
from advrisk.ledger import history, manifest, segments
from advrisk.ledger.rewriting import faults_of
from advrisk.ledger.sync import lease
from advrisk.ledger.sync.remote import Remote, RemoteFile
from advrisk.ledger.tables import TABLES

SEGMENTS = f"ledger/{segments.FOLDER}/"
HISTORY = f"ledger/{history.FILE}"
INPUTS = "inputs/"
_STATE = ".mirror.json"
_PACKED = "segment.zip"
_AT_ONCE = 8  # requests
_SMALL = 2**20  # bytes
_MEMBERS = {*(f"{name}.parquet" for name in TABLES), manifest.FILE, manifest.REPLACES_FILE}
_UNREADABLE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,  # it wants a passphrase
    ValueError,  # a name that is no text
)


def pull(remote: Remote, home: Path, *, verify: bool, inputs: Collection[str] | None) -> dict[str, RemoteFile]:
    """Bring a local copy up to date; once more if something was merged or deleted at the source meanwhile.

    Without `verify`, everything is fetched again, and damaged segments are there as far as they can be read. `inputs`
    are the folders of kept inputs that are needed; None: all. Returns what is there.
    """
    listing, published = _listed(remote)
    while True:
        try:
            _pull_listed(remote, listing, home, verify=verify, inputs=inputs)
            _put_history(home, published, listing.get(HISTORY))
            return listing
        except LedgerError:
            now, published = _listed(remote)
            if now.keys() >= listing.keys():
                raise
            listing = now


def _listed(remote: Remote) -> tuple[dict[str, RemoteFile], bytes | None]:
    """What is there, and the history of just then: it names nothing that is not listed, and lacks nothing that is.

    Lines are only ever added, so that it is the same as long as its size is.
    """
    listing = remote.listing()
    while HISTORY in listing:
        before, published = listing[HISTORY].bytes, remote.get(HISTORY)
        listing = remote.listing()
        if HISTORY in listing and before == listing[HISTORY].bytes == len(published):
            return listing, published
    return listing, None


def _put_history(home: Path, content: bytes | None, seen: RemoteFile | None) -> None:
    if content is None or seen is None:
        return
    path = home / HISTORY
    try:
        with whole_file(path, durable=False) as file:
            file.write_bytes(content)
            mark(file, seen)
    except OSError as error:
        raise _unwritable(path, error) from None


def _pull_listed(
    remote: Remote, listing: Mapping[str, RemoteFile], home: Path, *, verify: bool, inputs: Collection[str] | None
) -> None:
    """Fetch what is new, or small and maybe changed within a second; what is here only, and never was there, goes."""
    beside = {
        name: seen for name, seen in listing.items() if not name.startswith(SEGMENTS) and not lease.is_lease(name)
    }
    asked = {name for name in beside if name != HISTORY and _is_asked(name, inputs)}
    small = {name for name in asked if beside[name].bytes < _SMALL and not name.startswith(INPUTS)}
    changed = {name for name in asked - small if not verify or not is_same(home / name, beside[name])}
    at_once(lambda name: fetch_file(remote, name, beside[name], home), changed | small)
    if any(name.startswith("ledger/") for name in listing):
        (home / SEGMENTS).mkdir(parents=True, exist_ok=True)
        segments.remove_unfinished(home / "ledger")
    _pull_segments(remote, zips(listing), home, verify=verify)
    for name in files_of(home):
        if name not in beside or (name not in asked and not is_same(home / name, beside[name])):
            (home / name).unlink()


def _pull_segments(remote: Remote, packed: Mapping[str, RemoteFile], home: Path, *, verify: bool) -> None:
    known = _state(home) if verify else {}
    held = {segment.name: segment for segment in segments.all_segments(home / "ledger")}
    names = {Path(name).stem: name for name in packed}
    new = [
        stem
        for stem, name in names.items()
        if stem not in held or known.get(name) != (packed[name], _stamps(held[stem]))
    ]
    at_once(lambda stem: _unpack(remote, names[stem], home / SEGMENTS / stem, verify), new)
    for stem in held.keys() - names.keys():  # merged meanwhile, or never put there
        segments.retire(held[stem])
    remember(home, packed if verify else {})  # what was not verified is fetched again by who wants it whole


def _is_asked(name: str, inputs: Collection[str] | None) -> bool:
    """Whether a file beside the segments is needed. Those beside the folders of inputs are few, and always are."""
    folder, _, below = name.removeprefix(INPUTS).partition("/")
    return inputs is None or not name.startswith(INPUTS) or not below or folder in inputs


def is_same(path: Path, seen: RemoteFile) -> bool:
    """Whether a file here is the one there, and was not touched since it was fetched or put there."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return found.st_size == seen.bytes and abs(found.st_mtime - seen.written) < 1e-3


def mark(path: Path, seen: RemoteFile) -> None:
    """Say of a file that it is the one there."""
    os.utime(path, (seen.written, seen.written))


def fetch_file(remote: Remote, name: str, seen: RemoteFile, home: Path) -> None:
    """Fetch a file that lies beside the segments."""
    path = home / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, durable=False) as file:
            remote.fetch(name, file)
            mark(file, seen)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unpack(remote: Remote, name: str, segment: Path, verify: bool) -> None:
    """Fetch a segment, and let it appear once it is known to be what was written."""
    unfinished = segment.with_name(f".unfinished-{segment.name}-{uuid.uuid4().hex[:8]}")
    try:
        unfinished.mkdir(parents=True)
        remote.fetch(name, unfinished / _PACKED)
        fault = _unpacked(unfinished)
        if fault and verify:
            advice = f"`advrisk ledger check '{remote.url}' --repair` moves it aside"
            raise LedgerError(f"{remote.of(name)}: {fault}; {advice}")
        if segment.is_dir():
            segments.retire(segment)
        unfinished.rename(segment)
    except OSError as error:
        raise _unwritable(segment, error) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _unpacked(folder: Path) -> str:
    """Write the files of a segment; returns what is wrong with them. What cannot be read at all leaves no manifest."""
    (folder / manifest.FILE).touch()
    packed = folder / _PACKED
    try:
        with zipfile.ZipFile(packed) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            for entry in entries:
                if entry.filename not in _MEMBERS or entry.compress_type != zipfile.ZIP_STORED:
                    return f"{entry.filename!r} is no file of a segment"
                if names.count(entry.filename) > 1:
                    return f"{entry.filename!r} stands there twice"
                with archive.open(entry) as source, (folder / entry.filename).open("wb") as file:
                    shutil.copyfileobj(source, file)
    except _UNREADABLE as error:
        return f"cannot be read ({error})"
    except OSError as error:
        if error.errno != errno.EINVAL:  # it leads to a place before its beginning
            raise
        return f"cannot be read ({error.strerror})"
    finally:
        packed.unlink()
    faults, _ = faults_of(folder)
    return f"{min(faults)} {faults[min(faults)]}" if faults else ""


def zips(listing: Mapping[str, RemoteFile]) -> dict[str, RemoteFile]:
    """The segments of a folder on object storage."""
    return {name: seen for name, seen in listing.items() if name.startswith(SEGMENTS) and name.endswith(".zip")}


def zip_name(segment: Path) -> str:
    """What a segment is called there."""
    return f"{SEGMENTS}{segment.name}.zip"


def files_of(home: Path) -> list[str]:
    """Everything beside the segments, by its path in the folder; not what is hidden, or means this machine only."""
    found = []
    for folder, below, files in os.walk(home):
        below[:] = [name for name in below if not name.startswith(".") and name != segments.FOLDER]
        place = Path(folder).relative_to(home)
        found += [str(place / name) for name in files if not name.startswith(".") and name != "lock"]
    return sorted(found)


def at_once(action: Callable[[str], None], names: Iterable[str]) -> None:
    """Do something with several files at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(action, names))


def remember(home: Path, packed: Mapping[str, RemoteFile]) -> None:
    """Write down which segments there are those here."""
    held = {zip_name(segment): segment for segment in segments.all_segments(home / "ledger")}
    told = {name: [seen.bytes, seen.written, _stamps(held[name])] for name, seen in packed.items() if name in held}
    try:
        with whole_file(home / _STATE, durable=False) as file:
            file.write_text(json.dumps({"segments": told}), encoding="utf-8")
    except OSError as error:
        raise _unwritable(home / _STATE, error) from None


def _state(home: Path) -> dict[str, tuple[RemoteFile, list[list[object]]]]:
    """Which segments here are those there."""
    try:
        told = json.loads((home / _STATE).read_text(encoding="utf-8"))["segments"]
        return {name: (RemoteFile(size, written), stamps) for name, (size, written, stamps) in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # then everything is fetched again


def _stamps(segment: Path) -> list[list[object]]:
    files = sorted(segment.iterdir())
    return [[file.name, (found := file.stat()).st_size, found.st_mtime_ns] for file in files]


def _unwritable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(f"{path}: cannot be written: {error.strerror or error}; ADVRISK_CACHE names another folder")
