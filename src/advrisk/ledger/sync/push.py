"""From a writer's local copy to object storage: segments as they are published, everything else at the end."""

import contextlib
import io
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.ledger import manifest, segments
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.lease import Lease
from advrisk.ledger.sync.pull import INPUTS, SEGMENTS, at_once, files_of, mark, remember, zip_name, zips
from advrisk.ledger.sync.remote import Remote, Seen

_DELETED_THERE = (INPUTS, "detectors/")  # what is deleted here is deleted there

FileTime = tuple[int, int]  # bytes, and when it was written


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
        cls, home: Path, remote: Remote, lease: Lease, listing: Mapping[str, Seen], *, verified: bool
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
