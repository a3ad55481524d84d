"""Servers of others on loopback, and what lies on them."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import fs


@contextmanager
def served(program: str) -> Iterator[str]:
    """The address of a program that is told its port, and ends when nobody holds its standard input any more."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", program, str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
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
