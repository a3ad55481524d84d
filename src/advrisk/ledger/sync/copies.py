"""Runs on object storage: a folder of this machine that is made like the one elsewhere, and back.

Readers bring a copy up to date and read that; inputs that were kept are fetched when they are asked for. A writer works
in a copy of its own; a segment counts as published once it was put there, as one file (`00000017-3f2a9c1b.zip`, not
compressed), after the inputs that it tells of. So readers never see half a segment, and what is downloaded is compared
with the digests inside.
"""

import contextlib
import fcntl
import io
import os
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError, RunError
from advrisk.ledger import inputs as kept
from advrisk.ledger import manifest, segments
from advrisk.ledger.sync import lease
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
from advrisk.ledger.sync.remote import Remote, Seen, local_path, patiently, url_of

_DELETED_THERE = (INPUTS, "detectors/")  # what is deleted here is deleted there


def readable_folder(path: str | Path, *, verify: bool = True, inputs: bool = True) -> Path:
    """A folder with what is at a URL now; a folder of this machine is returned as it is.

    A damaged segment is refused; without `verify` all is fetched again, and it is there as far as it can be read, for
    whoever looks for damage. Without `inputs`, those that were kept are fetched once `ledger.inputs` is asked where
    they lie.
    """
    url = url_of(path)
    if url is None:
        return local_path(path)
    remote, home = Remote.open(url), copy_folder(url, "read" if verify else "check")
    with _alone(home, url, wait=True):
        listing = pull(remote, home, verify=verify, inputs=None if inputs else ())
    segments.READ_COPIES[home / "ledger"] = url
    kept.FETCHES[home] = _fetching(remote, home, listing)
    return home


@contextlib.contextmanager
def working_folder(path: str | Path, *, verify: bool = True, inputs: Collection[str] | None = None) -> Iterator[Path]:
    """A folder to write to. If the path is a URL, segments appear there as they are published, the rest at the end.

    `inputs` are the folders of kept inputs that the writer looks at (`shards`, `cells`, …); None: all of them.
    """
    url = url_of(path)
    if url is None:
        yield local_path(path)
        return
    remote, home = Remote.open(url), copy_folder(url, "write")
    remote.refuse_without_bucket()
    with _alone(home, url, wait=False), lease.leased(remote) as held:
        copy = _Copy(remote, home, held, pull(remote, home, verify=verify, inputs=inputs), verified=verify)
        segments.PUSHES[home / "ledger"] = copy.push_segment
        segments.DROPS[home / "ledger"] = copy.drop_segments
        try:
            yield home
        except BaseException as error:
            try:
                copy.push_rest()
            except LedgerError as failure:
                error.add_note(f"what lies beside the ledger could not be put there: {failure}")
            raise
        else:
            patiently(copy.push_rest)
        finally:
            del segments.PUSHES[home / "ledger"], segments.DROPS[home / "ledger"]


class _Copy:
    """A writer's copy of a folder elsewhere: what it has seen there or put there, it may replace and delete."""

    def __init__(
        self, remote: Remote, home: Path, held: lease.Lease, listing: Mapping[str, Seen], *, verified: bool
    ) -> None:
        self._remote, self._home, self._lease = remote, home, held
        self._sent = {name: _stamp(home / name) for name in files_of(home)}
        self._segments = set(zips(listing))
        self._whole = set(self._segments) if verified else set()

    def push_segment(self, segment: Path) -> None:
        """Make a segment appear elsewhere, after everything that it tells of."""
        self._lease.check()
        told = manifest.read_manifest(segment)
        beside = [name for name in files_of(self._home) if not name.startswith(INPUTS)]
        self._push([*(told.inputs if told else ()), *beside])
        self._lease.check()
        self._remote.put(zip_name(segment), _packed(segment))
        self._segments.add(zip_name(segment))
        self._whole.add(zip_name(segment))

    def drop_segments(self, names: Iterable[str]) -> None:
        """Delete what was replaced; what cannot be deleted now is deleted at the end."""

        def drop(name: str) -> None:
            with contextlib.suppress(LedgerError):
                self._remote.delete(name)

        self._lease.check()
        at_once(drop, {f"{SEGMENTS}{name}.zip" for name in names} & self._segments)

    def push_rest(self) -> None:
        """What lies beside the segments; and what is no longer here goes there, too."""
        self._lease.check()
        self._push(files_of(self._home))
        here = {zip_name(segment) for segment in segments.all_segments(self._home / "ledger")}
        listing = self._remote.listing()
        if lost := here - listing.keys():
            raise LedgerError(
                f"{self._remote.of(min(lost))}: was put there, and is gone: somebody else deletes files in this "
                "folder. Run the same command again: what is not there is done again"
            )
        for name in sorted(listing.keys() & self._gone(here)):
            self._lease.check()
            self._remote.delete(name)
        for name, stamp in self._sent.items():
            if name in listing and stamp == _stamp(self._home / name) and stamp and stamp[0] == listing[name].bytes:
                mark(self._home / name, listing[name])
        remember(self._home, {name: listing[name] for name in here & self._whole})

    def _gone(self, here: Collection[str]) -> set[str]:
        """What this writer has seen or put there, and took away here; what others put there meanwhile is theirs."""
        files = {name for name in self._sent if name.startswith(_DELETED_THERE) and not (self._home / name).is_file()}
        return files | (self._segments - set(here))

    def _push(self, names: Iterable[str]) -> None:
        changed = {name: now for name in names if (now := _stamp(self._home / name)) != self._sent.get(name) and now}
        at_once(lambda name: self._remote.put_file(name, self._home / name), changed)
        self._sent |= changed


def _fetching(remote: Remote, home: Path, listing: Mapping[str, Seen]) -> Callable[[Path], None]:
    """Fetches a file of inputs, or all in a folder, if it is not here."""

    def fetch(path: Path) -> None:
        name = str(path.relative_to(home))
        whole = () if name.endswith(".npz") else (one for one in listing if one.startswith(f"{name}/"))
        asked = [one for one in ([name] if name in listing else whole) if not is_same(home / one, listing[one])]
        if asked:
            with _alone(home, remote.url, wait=True):
                at_once(one, asked)

    def one(name: str) -> None:
        try:
            fetch_file(remote, name, listing[name], home)
        except LedgerError as error:
            if _is_there(name):  # else it was deleted meanwhile
                raise RunError(str(error)) from None  # by a LedgerError readers know inputs that were not kept

    def _is_there(name: str) -> bool:
        try:
            return remote.seen(name) is not None
        except LedgerError:
            return True  # as far as anybody knows

    return fetch


def _packed(segment: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(segment.iterdir()):
            archive.write(file, file.name)
    return buffer.getvalue()


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def copy_folder(url: str, purpose: str) -> Path:
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
