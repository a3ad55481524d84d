"""Servers of others on loopback, and what lies on them."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import fs

from tests.servers import started


@contextmanager
def served(program: str) -> Iterator[str]:
    """The address of a program that is told its port, and ends when nobody holds its standard input any more."""
    address, server = started(program)
    with server:
        yield address
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


def keys(storage: fs.S3FileSystem, prefix: str) -> list[str]:
    found = storage.get_file_info(fs.FileSelector(prefix, recursive=True, allow_not_found=True))
    return sorted(one.path.removeprefix(f"{prefix}/") for one in found if one.type == fs.FileType.File)


def zips(storage: fs.S3FileSystem, prefix: str) -> list[str]:
    return [name for name in keys(storage, prefix) if name.endswith(".zip")]


def put(storage: fs.S3FileSystem, path: str, data: bytes) -> None:
    with storage.open_output_stream(path) as file:
        file.write(data)


def get(storage: fs.S3FileSystem, path: str) -> bytes:
    with storage.open_input_file(path) as file:
        return bytes(file.read())
