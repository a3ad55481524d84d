"""Folders on object storage, by URL: s3://bucket/prefix, gs://bucket/prefix; file:///folder is a local folder.

Credentials come from the environment, as pyarrow finds them. `AWS_ENDPOINT_URL`, or `?endpoint_override=host:port&
scheme=http` in the URL, names a server other than Amazon's.
"""

import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlencode, urlsplit

from advrisk.core.errors import LedgerError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)  # one letter is a drive
_USER = re.compile(r"(?<=:/)(/*).*@", re.DOTALL)  # a secret may hold a slash: up to the last @
_SCHEMES = ("s3", "gs", "gcs")
_RETRY_S = 30
# Of each try: a request that nobody answers is given up after about ten seconds, one that writes after thirty.
_CONNECT_S, _ANSWER_S, _TRIES = 5.0, 3.0, 3
PATIENCE_S = 300.0  # at the end of a run, with a place that does not answer
_PAUSE_S = 5.0
_LOG = logging.getLogger(__name__)
_BLOCK = 2**22  # bytes
_S3_OPTIONS = ("region", "scheme", "endpoint_override")
T = TypeVar("T")


class UnreachableError(LedgerError):
    """Object storage did not answer, or refused; it may answer later."""


def url_of(path: str | Path) -> str | None:
    """The URL that a path stands for, also if somebody made a `Path` of it, which loses a slash; None for a folder.

    An address that is neither is refused, and not taken for a folder called so.
    """
    found = _ADDRESS.fullmatch(str(path))
    scheme = found[1].lower() if found else "file"
    if found is None or scheme == "file":
        return None
    if scheme not in _SCHEMES:
        raise LedgerError(
            f"{masked(path)}: such an address is not known; known are s3://, gs:// and file:///. Of a folder called "
            "so, write the whole path, from /"
        )
    url = f"{scheme}://{found[2].rstrip('/')}"
    _refuse_strange(url)
    return url


def local_path(path: str | Path) -> Path:
    """A folder or file of this machine, also as file:///folder."""
    found = _ADDRESS.fullmatch(str(path))
    if found is None or found[1].lower() != "file":
        return Path(path)
    parts = _split(f"file://{str(path)[len(found[1]) + 1 :].removeprefix('//')}")
    if isinstance(path, Path):  # which lost the slashes that tell a machine from a folder
        parts = _split(f"file:///{found[2]}")
    if parts.netloc not in ("", "localhost"):
        raise LedgerError(f"{path}: names another machine, {parts.netloc}; a folder of this one is file:///folder")
    if parts.query or parts.fragment:
        raise LedgerError(f"{path}: a folder has no options; write ? as %3F and # as %23")
    return Path(unquote(parts.path) or "/")


def url_below(url: str, name: str) -> str:
    """The URL of a file in the folder at a URL, with the same options."""
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}").geturl()


def masked(address: str | Path) -> str:
    """An address without what may be a secret."""
    return _USER.sub(r"\1***@", str(address))


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise LedgerError(f"{masked(url)}: is no address ({error})") from None


def _refuse_strange(url: str) -> None:
    parts = _split(url)
    user, _, bucket = parts.netloc.rpartition("@")
    anonymous = user == "anonymous" and parts.scheme != "s3"  # as Google's storage knows it
    if (user and not anonymous) or ":" in bucket:
        raise LedgerError(
            f"{masked(url)}: credentials do not belong into an address, where others see them; put them into the "
            "environment"
        )
    if not bucket:
        raise LedgerError(f"{url}: names no bucket; write {parts.scheme}://bucket/folder")
    if parts.fragment:
        raise LedgerError(f"{url}: write # as %23 in an address")


@dataclass(frozen=True)
class RemoteFile:
    """A file on object storage: its size, and when it was written by the clock there."""

    bytes: int
    written: float


@dataclass(frozen=True)
class Remote:
    """A folder on object storage. Every file appears at once, when all of it is there."""

    url: str
    files: "FileSystem"
    root: str

    @classmethod
    def open(cls, url: str) -> "Remote":
        """The folder at a URL; it need not be there yet."""
        from pyarrow import fs

        parts = urlsplit(url)
        path = unquote(parts.path).rstrip("/")
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme != "s3":
            patient = urlencode({"retry_limit_seconds": _RETRY_S} | given)  # Google's own would be a quarter of an hour
            asked = parts._replace(query=patient, path=quote(path)).geturl()
            return cls(url, *_reached(url, lambda: fs.FileSystem.from_uri(asked)))
        if unknown := given.keys() - set(_S3_OPTIONS):
            raise LedgerError(f"{url}: unknown option {min(unknown)!r}; known: {', '.join(_S3_OPTIONS)}")
        if "endpoint_override" not in given and (endpoint := os.environ.get("AWS_ENDPOINT_URL")):
            given |= {"endpoint_override": urlsplit(endpoint).netloc, "scheme": urlsplit(endpoint).scheme}
        patience: dict[str, Any] = {"connect_timeout": _CONNECT_S, "request_timeout": _ANSWER_S}
        patience["retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES)
        # Delayed: a file of usual size is one request.
        files = _reached(url, lambda: fs.S3FileSystem(allow_delayed_open=True, **patience, **given))
        return cls(url, files, f"{parts.netloc}{path}")

    def of(self, name: str) -> str:
        """The URL of a file."""
        return url_below(self.url, name)

    def listing(self) -> dict[str, RemoteFile]:
        """All files below the folder, by their path in it."""
        from pyarrow import fs

        asked = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        found = _reached(self.url, lambda: self.files.get_file_info(asked))
        if not found:
            self.refuse_without_bucket()
        names = {one.path[len(self.root) + 1 :]: one for one in found if one.type == fs.FileType.File}
        if strange := [name for name in names if ".." in Path(name).parts or name.startswith("/")]:
            raise LedgerError(f"{self.url}: {strange[0]!r} is no name of a file of a run; remove it")
        return {name: RemoteFile(one.size, one.mtime.timestamp()) for name, one in names.items()}

    def refuse_without_bucket(self) -> None:
        """A bucket that is not there, which looks like an empty folder; who may not ask for it is not refused."""
        from pyarrow import fs

        try:
            (found,) = self.files.get_file_info([self.root.partition("/")[0]])
        except OSError:
            return  # whatever hinders this is said of what is asked next
        if found.type == fs.FileType.NotFound:
            raise _no_bucket(self.url)

    def seen(self, name: str) -> RemoteFile | None:
        """One file; None where there is none."""
        from pyarrow import fs

        (found,) = _reached(self.url, lambda: self.files.get_file_info([f"{self.root}/{name}"]))
        return RemoteFile(found.size, found.mtime.timestamp()) if found.type == fs.FileType.File else None

    def get(self, name: str) -> bytes:
        """The contents of a file."""

        def read() -> bytes:
            with self.files.open_input_file(f"{self.root}/{name}") as file:
                return bytes(file.read())

        return _reached(self.of(name), read)

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file to this machine, block by block."""
        place = f"{self.root}/{name}"
        with _reached(self.of(name), lambda: self.files.open_input_stream(place)) as source, target.open("wb") as file:
            while block := _reached(self.of(name), lambda: source.read(_BLOCK)):
                file.write(block)

    def put(self, name: str, data: bytes) -> None:
        """Write a file; whoever reads sees all of it, or what was there before."""
        self._put(name, data)

    def put_file(self, name: str, source: Path) -> None:
        """Copy a file of this machine there, without holding it in memory."""
        import pyarrow as pa

        if source.stat().st_size == 0:
            self._put(name, b"")
            return
        with pa.memory_map(str(source)) as file:
            # In one piece: a stream that is closed half-way would leave half a file.
            self._put(name, file.read_buffer())

    def _put(self, name: str, data: Any) -> None:
        def write() -> None:
            with self.files.open_output_stream(f"{self.root}/{name}") as file:
                file.write(data)

        _reached(self.of(name), write)

    def delete(self, name: str) -> None:
        """Delete a file."""
        _reached(self.of(name), lambda: self.files.delete_file(f"{self.root}/{name}"))


def last_part(url: str) -> str:
    """What a folder at a URL is called; the bucket, if it is all of it."""
    parts = urlsplit(url)
    return unquote(parts.path).rstrip("/").rpartition("/")[2] or parts.netloc.rpartition("@")[2]


def parent_and_name(url: str) -> tuple[str, str]:
    """The URL of the folder that a file is in, with the same options, and the file's name."""
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    if not name:
        raise LedgerError(f"{url}: names no file; write {parts.scheme}://bucket/folder/file")
    return parts._replace(path=folder).geturl(), unquote(name)


def patiently(action: Callable[[], T]) -> T:
    """Do what ends a run, or what it cannot go on without: a place that does not answer is waited for, for minutes."""
    ends, told = time.monotonic() + PATIENCE_S, False
    while True:
        try:
            return action()
        except UnreachableError as error:
            if time.monotonic() + _PAUSE_S > ends:
                raise
            if not told:
                _LOG.warning("%s. It is waited for, up to %.0f minutes", error, PATIENCE_S / 60)
            told = True
            time.sleep(_PAUSE_S)


def _reached(place: str, action: Callable[[], T]) -> T:
    from pyarrow import ArrowException

    try:
        return action()
    except (OSError, ArrowException) as error:
        if "NO_SUCH_BUCKET" in str(error):
            raise _no_bucket(place) from None
        raise UnreachableError(
            f"{place}: cannot be reached ({_short(error)}); check the address, and the credentials in the environment"
        ) from None


def _no_bucket(url: str) -> LedgerError:
    parts = urlsplit(url)
    return LedgerError(
        f"{parts.scheme}://{parts.netloc}: there is no such bucket; check the address, or make the bucket first"
    )


def _short(error: Any) -> str:
    return " ".join(str(error).split())[:300]
