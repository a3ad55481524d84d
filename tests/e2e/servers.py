"""Servers of others on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager

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
