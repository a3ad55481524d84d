"""Servers of others on loopback, and what lies on them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyarrow import fs

from advrisk.ledger.sync import lease
from tests.servers import started

_S3 = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
server.start()
sys.stdin.read()
server.stop()
"""


@contextmanager
def served(program: str) -> Iterator[str]:
    """The address of a program that is told its port, and ends when nobody holds its standard input any more."""
    address, server = started(program)
    with server:
        yield address
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


@contextmanager
def s3_served() -> Iterator[fs.S3FileSystem]:
    """A server that speaks S3, found through the environment, as users would name it; it has a bucket."""
    names = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    with served(_S3) as endpoint, pytest.MonkeyPatch.context() as patch:
        for name, value in (names | {"AWS_ENDPOINT_URL": f"http://{endpoint}"}).items():
            patch.setenv(name, value)
        patch.setattr(lease, "_SETTLE_S", 0.01)
        made = fs.S3FileSystem(endpoint_override=endpoint, scheme="http", allow_bucket_creation=True)
        made.create_dir("bucket")
        yield made


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
