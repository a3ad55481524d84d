"""Folders that lie elsewhere, by URL: s3://bucket/prefix, gs://bucket/prefix; file:///folder is a folder like others.

Credentials come from the environment, as pyarrow finds them. `AWS_ENDPOINT_URL`, or `?endpoint_override=host:port&
scheme=http` in the URL, names a server other than Amazon's.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

from advrisk.core.errors import LedgerError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_URL = re.compile(r"(s3|gs|gcs):/+(.+)")
_FILE = re.compile(r"file:/+(.*)")
_RETRY_S = 30
_S3_OPTIONS = ("region", "scheme", "endpoint_override")
T = TypeVar("T")


class UnreachableError(LedgerError):
    """A place elsewhere did not answer, or refused; it may answer later."""


def url_of(path: str | Path) -> str | None:
    """The URL that a path stands for, also if somebody made a `Path` of it, which loses a slash; None for a folder."""
    found = _URL.fullmatch(str(path))
    return f"{found[1]}://{found[2].rstrip('/')}" if found else None


def local_path(path: str | Path) -> Path:
    """A folder of this machine, also as file:///folder."""
    found = _FILE.fullmatch(str(path))
    return Path(f"/{found[1]}") if found else Path(path)


@dataclass(frozen=True)
class Seen:
    """A file elsewhere: its size, and when it was written by the clock there."""

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
        root = f"{parts.netloc}{parts.path}".rstrip("/")
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme != "s3":
            patient = urlencode({"retry_limit_seconds": _RETRY_S} | given)  # Google's own would be a quarter of an hour
            return cls(url, *_reached(url, lambda: fs.FileSystem.from_uri(parts._replace(query=patient).geturl())))
        if unknown := given.keys() - set(_S3_OPTIONS):
            raise LedgerError(f"{url}: unknown option {min(unknown)!r}; known: {', '.join(_S3_OPTIONS)}")
        if "endpoint_override" not in given and (endpoint := os.environ.get("AWS_ENDPOINT_URL")):
            given |= {"endpoint_override": urlsplit(endpoint).netloc, "scheme": urlsplit(endpoint).scheme}
        # Delayed: a file of usual size is one request.
        return cls(url, _reached(url, lambda: fs.S3FileSystem(allow_delayed_open=True, **given)), root)

    def listing(self) -> dict[str, Seen]:
        """All files below the folder, by their path in it."""
        from pyarrow import fs

        asked = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        found = _reached(self.url, lambda: self.files.get_file_info(asked))
        names = {one.path[len(self.root) + 1 :]: one for one in found if one.type == fs.FileType.File}
        if strange := [name for name in names if ".." in Path(name).parts or name.startswith("/")]:
            raise LedgerError(f"{self.url}: {strange[0]!r} is no name of a file of a run; remove it")
        return {name: Seen(one.size, one.mtime.timestamp()) for name, one in names.items()}

    def seen(self, name: str) -> Seen | None:
        """One file; None where there is none."""
        from pyarrow import fs

        (found,) = _reached(self.url, lambda: self.files.get_file_info([f"{self.root}/{name}"]))
        return Seen(found.size, found.mtime.timestamp()) if found.type == fs.FileType.File else None

    def get(self, name: str) -> bytes:
        """The contents of a file."""

        def read() -> bytes:
            with self.files.open_input_file(f"{self.root}/{name}") as file:
                return bytes(file.read())

        return _reached(f"{self.url}/{name}", read)

    def put(self, name: str, data: bytes) -> None:
        """Write a file; whoever reads sees all of it, or what was there before."""

        def write() -> None:
            with self.files.open_output_stream(f"{self.root}/{name}") as file:
                file.write(data)

        _reached(f"{self.url}/{name}", write)

    def delete(self, name: str) -> None:
        """Delete a file."""
        _reached(f"{self.url}/{name}", lambda: self.files.delete_file(f"{self.root}/{name}"))


def put_file(url: str, source: Path) -> None:
    """Copy one file to a URL of its own."""
    folder, _, name = url.rpartition("/")
    Remote.open(folder).put(name, source.read_bytes())


def _reached(place: str, action: Callable[[], T]) -> T:
    from pyarrow import ArrowException

    try:
        return action()
    except (OSError, ArrowException) as error:
        raise UnreachableError(
            f"{place}: cannot be reached ({_short(error)}); check the address, and the credentials in the environment"
        ) from None


def _short(error: Any) -> str:
    return " ".join(str(error).split())[:300]
