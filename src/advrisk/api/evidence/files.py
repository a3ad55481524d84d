"""The files of an evidence pack, in a folder or a zip, read so that a hostile one does no harm.

Nothing is unpacked, no link is followed, and nothing is read without a limit. What is wrong with a pack is a RiskError.
"""

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from advrisk.assess.certificate.document import strict_json
from advrisk.core.errors import RiskError, RunError
from advrisk.core.files import regular
from advrisk.ledger.digests import FileDigest
from advrisk.report.evidence.document import check_document

KIND, VERSION = "evidence-pack", 2
MANIFEST = "manifest.json"
MAX_FILES = 10_000
MAX_BYTES = 2 * 2**30  # of all files together, unpacked
MAX_JSON_BYTES = 200 * 2**20
_MAX_NAME = 500
_MAX_DIRECTORY_BYTES = 10 * 2**20  # of a zip's list of files
_BEGIN = b"PK"
_END, _END_LENGTH, _LONGEST_COMMENT, _ZIP64 = b"PK\5\6", 22, 65_535, b"PK\6\7"
_LENGTHS_AT = 26  # in the header of a file: the lengths of its name and of further fields, where the header ends
_DESCRIPTORS = (12, 16, 20, 24)  # bytes that may follow a file, where a flag announces them
_UNREADABLE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,  # it wants a passphrase
    EOFError,
    ValueError,
    OSError,
)


@dataclass(frozen=True)
class Pack:
    """The files of a pack: paths and sizes, and how to open one."""

    place: Path
    sizes: Mapping[str, int]
    opened: Callable[[str], IO[bytes]]

    def read(self, name: str) -> bytes:
        """A file that is held in memory as a whole."""
        if name not in self.sizes:
            raise RiskError(f"{self.place}: holds no {name}")
        if self.sizes[name] > MAX_JSON_BYTES:
            raise RiskError(f"{self.place}: {name} is larger than {MAX_JSON_BYTES:,} bytes")
        with self._reading(name) as file:
            return file.read(MAX_JSON_BYTES + 1)

    def json(self, name: str) -> dict[str, Any]:
        """One of the JSON files that every pack has, checked field by field."""
        try:
            content = strict_json(self.read(name))
        except (ValueError, RecursionError) as error:
            if isinstance(error, RiskError):
                raise
            raise RiskError(f"{self.place}: {name} cannot be read as JSON ({error})") from None
        version = content.get("version") if isinstance(content, dict) else None
        if isinstance(version, int) and (version > VERSION or isinstance(version, bool)):
            raise RiskError(
                f"{self.place}: {name} is of version {version}, and {VERSION} is known; a later advrisk may know it"
            )
        try:
            check_document(name, content)
        except RiskError as error:
            raise RiskError(f"{self.place}: {error}") from None
        found: dict[str, Any] = content
        return found

    def digest(self, name: str) -> FileDigest:
        """SHA-256 of a file, and how many bytes it really has."""
        with self._reading(name) as file:
            hasher, size = hashlib.sha256(), 0
            while block := file.read(2**20):
                hasher.update(block)
                size += len(block)
                if size > self.sizes[name]:
                    raise RiskError(f"{self.place}: {name} is larger than it says")
        return FileDigest(name, size, hasher.hexdigest())

    @contextmanager
    def _reading(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self.opened(name) as file:
                yield file
        except RiskError:
            raise
        except _UNREADABLE as error:
            raise RiskError(f"{self.place}: {name} cannot be read ({error})") from None


def is_pack(path: Path) -> bool:
    """Whether somebody means a pack by this path: a folder, or a zip by its name or its first bytes."""
    if path.is_dir() or path.suffix.lower() == ".zip":
        return True
    try:
        with regular(path).open("rb") as file:
            return file.read(2) == _BEGIN
    except OSError:
        return False


@contextmanager
def open_pack(path: Path) -> Iterator[Pack]:
    """The pack in that folder or zip. A path where nothing is, where no zip begins or without a
    manifest raises RunError."""
    if path.is_dir():
        if not os.path.lexists(path / MANIFEST):  # whatever else it holds, as links
            raise _no_pack(path)
        yield _folder(path)
        return
    try:
        file = regular(path).open("rb")
    except OSError as error:
        raise RunError(f"{path}: the evidence pack cannot be read: {error.strerror}") from None
    with file:
        if file.read(2) != _BEGIN:
            raise RunError(
                f"{path}: is no evidence pack: neither a folder nor a zip; `advrisk evidence RUN` writes one"
            )
        with _archive(path, file) as archive:
            sizes = _checked_entries(path, archive)
            _refuse_hidden_bytes(path, file, archive)
            if MANIFEST not in sizes:
                raise _no_pack(path)
            yield Pack(path, sizes, archive.open)


def _no_pack(path: Path) -> RunError:
    return RunError(f"{path}: holds no {MANIFEST} and is no evidence pack; `advrisk evidence RUN` writes one")


def _folder(path: Path) -> Pack:
    sizes: dict[str, int] = {}
    for found, folders, names in os.walk(path):
        for name in (*folders, *names):
            entry = Path(found, name)
            shown, status = entry.relative_to(path).as_posix(), entry.lstat()
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise RiskError(f"{path}: {_shown(shown)} is neither a file nor a folder, but a link or a device")
            if stat.S_ISREG(status.st_mode):
                sizes[shown] = status.st_size
        _check_limits(path, sizes)
    return Pack(path, sizes, lambda name: (path / name).open("rb"))


@contextmanager
def _archive(path: Path, file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    try:
        _check_end(path, file)
        archive = zipfile.ZipFile(file)
    except RiskError:
        raise
    except _UNREADABLE as error:
        raise RiskError(f"{path}: cannot be read as a zip ({error})") from None
    with archive:
        yield archive


def _check_end(path: Path, file: IO[bytes]) -> None:
    """The list of files at a zip's end is read into memory as a whole: it must not be a large one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_LENGTH - _LONGEST_COMMENT - 20))
    tail = file.read()
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < _END_LENGTH:
        raise RiskError(f"{path}: is no whole zip: its end is missing")
    entries, length = struct.unpack("<HL", tail[place + 10 : place + 16])
    if _ZIP64 in tail[max(0, place - 20) : place] or entries > MAX_FILES or length > _MAX_DIRECTORY_BYTES:
        raise RiskError(f"{path}: lists more files than the {MAX_FILES:,} that a pack may have")
    if beyond := len(tail) - place - _END_LENGTH:
        raise RiskError(
            f"{path}: {beyond:,} bytes follow the archive, and no signature covers them; nothing was unpacked"
        )
    file.seek(0)


def _checked_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, int]:
    sizes: dict[str, int] = {}
    seen: set[str] = set()
    for entry in archive.infolist():
        name = entry.filename.removesuffix("/")  # of a folder
        if problem := _entry_problem(entry, name):
            raise RiskError(f"{path}: {_shown(entry.orig_filename)} {problem}; nothing was unpacked")
        if name.casefold() in seen:
            raise RiskError(f"{path}: {_shown(name)} stands there twice; nothing was unpacked")
        seen.add(name.casefold())
        if name == entry.filename:
            sizes[name] = entry.file_size
    _check_limits(path, sizes)
    if sum(entry.compress_size for entry in archive.infolist()) > path.stat().st_size:
        raise RiskError(f"{path}: its files overlap each other; nothing was unpacked")
    return sizes


def _refuse_hidden_bytes(path: Path, file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Every byte belongs to a file of the pack or to the list of files: no signature would cover others."""
    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    begins = [*(entry.header_offset for entry in entries), archive.start_dir]
    hidden = abs(begins[0])
    for entry, following in zip(entries, begins[1:], strict=True):
        if hidden:
            break
        file.seek(entry.header_offset + _LENGTHS_AT)
        lengths = file.read(4)
        if len(lengths) < 4:
            raise RiskError(f"{path}: cannot be read as a zip ({_shown(entry.filename)} is cut off)")
        begin = entry.header_offset + _LENGTHS_AT + 4 + sum(struct.unpack("<HH", lengths))
        spare = following - begin - entry.compress_size
        hidden += 0 if entry.flag_bits & 0x8 and spare in _DESCRIPTORS else abs(spare)
    if hidden:
        raise RiskError(f"{path}: {hidden:,} bytes in it belong to no file; nothing was unpacked")


def _entry_problem(entry: zipfile.ZipInfo, name: str) -> str | None:
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if entry.orig_filename != entry.filename or (problem := _name_problem(name)):
        return "is no name that a file of a pack can have" if entry.orig_filename != entry.filename else problem
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is neither a file nor a folder, but a link or a device"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    if entry.filename != name and entry.file_size:
        return "is a folder that has content"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in a way that packs do not use"
    return None


def _name_problem(name: str) -> str | None:
    """A name that leaves the pack, or means different things on different machines."""
    parts = name.split("/")
    if not name or len(name) > _MAX_NAME or not name.isprintable() or any(sign in name for sign in "\\:"):
        return "is no name that a file of a pack can have"
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the pack"
    return None


def _check_limits(path: Path, sizes: Mapping[str, int]) -> None:
    if len(sizes) > MAX_FILES:
        raise RiskError(f"{path}: holds more than the {MAX_FILES:,} files that a pack may have")
    if sum(sizes.values()) > MAX_BYTES:
        raise RiskError(f"{path}: holds more than the {MAX_BYTES:,} bytes that a pack may have")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:100]}…")
