"""Runs on object storage: a folder of this machine that is made like the one elsewhere, and back.

Readers bring a copy up to date and read that. A writer works in a copy of its own; a segment counts as published once
it was put there, as one file (`00000017-3f2a9c1b.zip`, not compressed), after the inputs that it tells of. So readers
never see half a segment, and what is downloaded is compared with the digests inside.
"""

import contextlib
import fcntl
import io
import json
import os
import shutil
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.files import whole_file
from advrisk.ledger import lease, manifest, segments
from advrisk.ledger.remote import Remote, Seen, local_path, url_of
from advrisk.ledger.rewriting import faults_of
from advrisk.ledger.tables import TABLES

_SEGMENTS = f"ledger/{segments.FOLDER}/"
_STATE = ".mirror.json"
_AT_ONCE = 8  # requests
_SMALL = 2**20  # bytes
_MEMBERS = {*(f"{name}.parquet" for name in TABLES), manifest.FILE, manifest.REPLACES_FILE}
_DELETED_THERE = ("inputs/", "detectors/")  # what is deleted here is deleted there


def readable_folder(path: str | Path, *, verify: bool = True) -> Path:
    """A folder with what is at a URL now; a folder of this machine is returned as it is.

    A damaged segment is refused; without `verify` it is there as far as it can be read, for whoever looks for damage.
    """
    url = url_of(path)
    if url is None:
        return local_path(path)
    home = _home(url, "read" if verify else "check")
    with _alone(home, url, wait=True):
        _pull(Remote.open(url), home, verify=verify)
    return home


@contextlib.contextmanager
def working_folder(path: str | Path, *, verify: bool = True) -> Iterator[Path]:
    """A folder to write to. If the path is a URL, segments appear there as they are published, the rest at the end."""
    url = url_of(path)
    if url is None:
        yield local_path(path)
        return
    remote, home = Remote.open(url), _home(url, "write")
    with _alone(home, url, wait=False), lease.leased(remote) as held:
        _pull(remote, home, verify=verify)
        copy = _Copy(remote, home, held)
        segments.PUSHES[home / "ledger"] = copy.push_segment
        segments.DROPS[home / "ledger"] = copy.drop_segments
        try:
            yield home
        except BaseException as error:
            try:
                copy.push_rest()
            except LedgerError as failure:
                error.add_note(f"and what lies beside the ledger could not be put there: {failure}")
            raise
        else:
            copy.push_rest()
        finally:
            del segments.PUSHES[home / "ledger"], segments.DROPS[home / "ledger"]


class _Copy:
    """A writer's copy of a folder elsewhere."""

    def __init__(self, remote: Remote, home: Path, held: lease.Lease) -> None:
        self._remote, self._home, self._lease = remote, home, held
        self._sent = {name: _stamp(home / name) for name in _files(home)}

    def push_segment(self, segment: Path) -> None:
        """Make a segment appear elsewhere, after everything that it tells of."""
        told = manifest.read_manifest(segment)
        beside = [name for name in _files(self._home) if not name.startswith("inputs/")]
        self._push([*(told.inputs if told else ()), *beside])
        self._lease.check()
        self._remote.put(f"{_SEGMENTS}{segment.name}.zip", _packed(segment))

    def drop_segments(self, names: Iterable[str]) -> None:
        """Delete what was replaced; what cannot be deleted now is deleted at the end."""

        def drop(name: str) -> None:
            with contextlib.suppress(LedgerError):
                self._remote.delete(f"{_SEGMENTS}{name}.zip")

        self._lease.check()
        _at_once(drop, names)

    def push_rest(self) -> None:
        """What lies beside the segments; and what is no longer here goes there, too."""
        self._lease.check()
        self._push(_files(self._home))
        here = {f"{_SEGMENTS}{segment.name}.zip" for segment in segments.all_segments(self._home / "ledger")}
        listing = self._remote.listing()
        for name in listing:
            stays = name in here if name.startswith(_SEGMENTS) else (self._home / name).is_file()
            if not stays and name.startswith((_SEGMENTS, *_DELETED_THERE)):
                self._remote.delete(name)
        _remember(self._home, {name: seen for name, seen in listing.items() if name in self._sent})

    def _push(self, names: Iterable[str]) -> None:
        changed = {name: now for name in names if (now := _stamp(self._home / name)) != self._sent.get(name) and now}
        _at_once(lambda name: self._remote.put(name, (self._home / name).read_bytes()), changed)
        self._sent |= changed


def _pull(remote: Remote, home: Path, *, verify: bool) -> None:
    """Make a folder here what it is elsewhere; once more if something was merged or deleted there meanwhile."""
    listing = remote.listing()
    while True:
        try:
            return _pull_listed(remote, listing, home, verify=verify)
        except LedgerError:
            now = remote.listing()
            if now.keys() >= listing.keys():
                raise
            listing = now


def _pull_listed(remote: Remote, listing: Mapping[str, Seen], home: Path, *, verify: bool) -> None:
    """Fetch what is new, or small and maybe changed within a second; what is here only, and never was there, goes."""
    known, beside = _state(home), {}
    packed = {Path(name).stem: name for name in listing if name.startswith(_SEGMENTS) and name.endswith(".zip")}
    for name, seen in listing.items():
        if not name.startswith(_SEGMENTS) and name != lease.FILE:
            beside[name] = seen
    small = {name for name, seen in beside.items() if seen.bytes < _SMALL and not name.startswith("inputs/")}
    changed = [name for name, seen in beside.items() if known.get(name) != seen or not (home / name).is_file()]
    _at_once(lambda name: _store(home / name, remote.get(name)), {*changed, *small})
    if any(name.startswith("ledger/") for name in listing):
        (home / _SEGMENTS).mkdir(parents=True, exist_ok=True)
    held = {segment.name for segment in segments.all_segments(home / "ledger")}
    _at_once(lambda name: _unpack(remote, packed[name], home / _SEGMENTS / name, verify), packed.keys() - held)
    for name in held - packed.keys():  # merged meanwhile, or never put there
        segments.retire(home / _SEGMENTS / name)
    for name in _files(home):
        if name not in beside:
            (home / name).unlink()
    _remember(home, beside)


def _unpack(remote: Remote, name: str, segment: Path, verify: bool) -> None:
    """Fetch a segment, and let it appear once it is known to be what was written."""
    unfinished = segment.with_name(f".unfinished-{segment.name}-{uuid.uuid4().hex[:8]}")
    fault = _unpacked(remote.get(name), unfinished)
    if fault and verify:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise LedgerError(f"{remote.url}/{name}: {fault}; `advrisk ledger check {remote.url} --repair` moves it aside")
    unfinished.rename(segment)


def _unpacked(data: bytes, folder: Path) -> str:
    """Write the files of a segment; returns what is wrong with them. What cannot be read at all leaves no manifest."""
    _store(folder / manifest.FILE, b"")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                if entry.filename not in _MEMBERS or entry.compress_type != zipfile.ZIP_STORED:
                    return f"{entry.filename!r} is no file of a segment"
                _store(folder / entry.filename, archive.read(entry))
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        return f"cannot be read ({error})"
    faults, _ = faults_of(folder)
    return f"{min(faults)} {faults[min(faults)]}" if faults else ""


def _packed(segment: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(segment.iterdir()):
            archive.write(file, file.name)
    return buffer.getvalue()


def _files(home: Path) -> list[str]:
    """Everything beside the segments, by its path in the folder; not what is hidden, or means this machine only."""
    found = []
    for folder, below, files in os.walk(home):
        below[:] = [name for name in below if not name.startswith(".") and name != segments.FOLDER]
        place = Path(folder).relative_to(home)
        found += [str(place / name) for name in files if not name.startswith(".") and name != "lock"]
    return sorted(found)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _store(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write_bytes(data)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be written: {error.strerror}; ADVRISK_CACHE names another folder") from None


def _at_once(action: Callable[[str], None], names: Iterable[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(action, names))


def _home(url: str, purpose: str) -> Path:
    """Where the copy of a folder lies: readers have one, and a writer has another."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "advrisk"
    return Path(os.environ.get("ADVRISK_CACHE") or usual) / f"{digest([url])[:16]}-{purpose}"


@contextlib.contextmanager
def _alone(home: Path, url: str, *, wait: bool) -> Iterator[None]:
    """Hold the copy of a folder against other processes of this machine."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(home / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LedgerError(f"{home}: cannot be made: {error.strerror}; ADVRISK_CACHE names another folder") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LedgerError(f"{url}: another process of this machine is writing to it; wait for it to end") from None
        yield
    finally:
        os.close(handle)


def _state(home: Path) -> dict[str, Seen]:
    """What was there when the copy was made like it."""
    try:
        content = json.loads((home / _STATE).read_text(encoding="utf-8"))
        return {name: Seen(*seen) for name, seen in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # then everything is fetched again


def _remember(home: Path, seen: dict[str, Seen]) -> None:
    _store(home / _STATE, json.dumps({name: [one.bytes, one.written] for name, one in seen.items()}).encode())
