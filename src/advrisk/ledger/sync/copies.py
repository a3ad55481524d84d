"""Local copies of runs on object storage: one to read, and one to write.

Readers pull a copy and read that; kept inputs are fetched once they are needed. A writer works in a copy of its own;
a segment counts as published once it was pushed, as one file (`00000017-3f2a9c1b.zip`, not compressed), after the
inputs that it names. So readers never see half a segment, and what is downloaded is compared with the digests inside.
"""

import contextlib
import fcntl
import io
import os
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError, RunError
from advrisk.ledger import manifest, segments
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync import lease
from advrisk.ledger.sync.lease import Lease
from advrisk.ledger.sync.pull import (
    INPUTS,
    SEGMENTS,
    at_once,
    fetch_file,
    files_of,
    is_same,
    mark,
    pull,
    remember,
    zip_name,
    zips,
)
from advrisk.ledger.sync.remote import Remote, RemoteFile, local_path, patiently, url_of

Place = str | Path | Storage  # a folder, a URL, or a storage that is open
_DELETED_THERE = (INPUTS, "detectors/")  # what is deleted here is deleted there

FileTime = tuple[int, int]  # bytes, and when it was written


def readable_storage(place: Place, *, verify: bool = True, inputs: Collection[str] | None = None) -> Storage:
    """A run to read: a folder of this machine as it is, or a local copy of what is at a URL now.

    A damaged segment is refused; without `verify` everything is fetched again, as far as it can be read, to look for
    damage. `inputs` are the folders of kept inputs to fetch at once (`shards`, `cells`, …; None: all of them);
    `Storage.fetch` fetches the others.
    """
    if isinstance(place, Storage):
        return place
    url = url_of(place)
    if url is None:
        return Storage(local_path(place))
    remote, home = Remote.open(url), copy_folder(url, "read" if verify else "check")
    with _held(home, url, wait=True):
        listing = pull(remote, home, verify=verify, inputs=inputs)
    return ReadCopy(home, remote=remote, listing=listing)


@contextlib.contextmanager
def writable_storage(place: Place, *, verify: bool = True, inputs: Collection[str] | None = None) -> Iterator[Storage]:
    """A run to write to. At a URL, segments appear as they are published, everything else at the end.

    `inputs` are the folders of kept inputs that the writer reads (`shards`, `cells`, …); None: all of them.
    """
    url = None if isinstance(place, Storage) else url_of(place)
    if isinstance(place, Storage):
        place.refuse_writing()
        yield place
        return
    if url is None:
        yield Storage(local_path(place))
        return
    remote, home = Remote.open(url), copy_folder(url, "write")
    remote.refuse_without_bucket()
    with _held(home, url, wait=False), lease.leased(remote) as held:
        listing = pull(remote, home, verify=verify, inputs=inputs)
        copy = WriteCopy.begun(home, remote, held, listing, verified=verify)
        try:
            yield copy
        except BaseException as error:
            try:
                copy.push_rest()
            except LedgerError as failure:
                error.add_note(f"what lies beside the ledger could not be put there: {failure}")
            raise
        else:
            patiently(copy.push_rest)


@dataclass(frozen=True)
class ReadCopy(Storage):
    """A local copy to read, of what was listed at a URL."""

    remote: Remote = field(kw_only=True, compare=False)
    listing: Mapping[str, RemoteFile] = field(kw_only=True, repr=False, compare=False)

    def refuse_writing(self) -> None:
        raise LedgerError(
            f"{self.remote.url}: was opened to be read; write to it in `with advrisk.ledger.writable_storage(url)`"
        )

    def fetch(self, path: Path) -> Path:
        name = str(path.relative_to(self.folder))
        below = () if name.endswith(".npz") else (one for one in self.listing if one.startswith(f"{name}/"))
        wanted = [name] if name in self.listing else below
        missing = [one for one in wanted if not is_same(self.folder / one, self.listing[one])]
        if missing:
            with _held(self.folder, self.remote.url, wait=True):
                at_once(self._fetch_file, missing)
        return path

    def _fetch_file(self, name: str) -> None:
        try:
            fetch_file(self.remote, name, self.listing[name], self.folder)
        except LedgerError as error:
            if self._is_there(name):  # else it was deleted meanwhile
                raise RunError(str(error)) from None  # to readers, a LedgerError means inputs that were not kept

    def _is_there(self, name: str) -> bool:
        try:
            return self.remote.seen(name) is not None
        except LedgerError:
            return True  # for all that is known


def copy_folder(url: str, purpose: str) -> Path:
    """The folder of a local copy: readers have one, and a writer has another."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "advrisk"
    return Path(os.environ.get("ADVRISK_CACHE") or usual) / f"{digest([url])[:16]}-{purpose}"


@contextlib.contextmanager
def _held(home: Path, url: str, *, wait: bool) -> Iterator[None]:
    """Hold a local copy against other processes of this machine."""
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


@dataclass(frozen=True)
class WriteCopy(Storage):
    """A writer's local copy: what it has seen at the URL or put there, it may replace and delete."""

    remote: Remote = field(kw_only=True, compare=False)
    lease: Lease = field(kw_only=True, repr=False, compare=False)
    sent: dict[str, FileTime | None] = field(kw_only=True, repr=False, compare=False)  # files beside the segments
    zips: set[str] = field(kw_only=True, repr=False, compare=False)  # segments that were seen or put there
    whole: set[str] = field(kw_only=True, repr=False, compare=False)  # those of them that were verified

    @classmethod
    def begun(
        cls, home: Path, remote: Remote, lease: Lease, listing: Mapping[str, RemoteFile], *, verified: bool
    ) -> "WriteCopy":
        """A copy that was just pulled, with what was listed then."""
        sent = {name: _file_time(home / name) for name in files_of(home)}
        seen = set(zips(listing))
        whole = set(seen) if verified else set[str]()
        return cls(home, remote=remote, lease=lease, sent=sent, zips=seen, whole=whole)

    def push(self, segment: Path) -> None:
        """Put a segment there, after everything that it names."""
        self.lease.check()
        own = manifest.read_manifest(segment)
        beside = [name for name in files_of(self.folder) if not name.startswith(INPUTS)]
        self._push_files([*(own.inputs if own else ()), *beside])
        self.lease.check()
        self.remote.put(zip_name(segment), _packed(segment))
        self.zips.add(zip_name(segment))
        self.whole.add(zip_name(segment))

    def drop(self, names: Sequence[str]) -> None:
        """Delete what was replaced; what cannot be deleted now is deleted at the end."""

        def delete(name: str) -> None:
            with contextlib.suppress(LedgerError):
                self.remote.delete(name)

        self.lease.check()
        at_once(delete, {f"{SEGMENTS}{name}.zip" for name in names} & self.zips)

    def push_rest(self) -> None:
        """Push what lies beside the segments, and delete there what was deleted here."""
        self.lease.check()
        self._push_files(files_of(self.folder))
        here = {zip_name(segment) for segment in segments.all_segments(self.ledger)}
        listing = self.remote.listing()
        if lost := here - listing.keys():
            raise LedgerError(
                f"{self.remote.of(min(lost))}: was put there, and is gone: somebody else deletes files in this "
                "folder. Run the same command again: what is not there is done again"
            )
        for name in sorted(listing.keys() & self._deleted(here)):
            self.lease.check()
            self.remote.delete(name)
        for name, sent in self.sent.items():
            if name in listing and sent == _file_time(self.folder / name) and sent and sent[0] == listing[name].bytes:
                mark(self.folder / name, listing[name])
        remember(self.folder, {name: listing[name] for name in here & self.whole})

    def _deleted(self, here: Collection[str]) -> set[str]:
        """What this writer has seen or put there, and deleted here; what others put there meanwhile is theirs."""
        gone = {name for name in self.sent if name.startswith(_DELETED_THERE) and not (self.folder / name).is_file()}
        return gone | (self.zips - set(here))

    def _push_files(self, names: Iterable[str]) -> None:
        times = {name: _file_time(self.folder / name) for name in names}
        changed = {name: time for name, time in times.items() if time and time != self.sent.get(name)}
        at_once(lambda name: self.remote.put_file(name, self.folder / name), changed)
        self.sent.update(changed)


def _packed(segment: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(segment.iterdir()):
            archive.write(file, file.name)
    return buffer.getvalue()


def _file_time(path: Path) -> FileTime | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns
