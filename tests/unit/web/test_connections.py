"""Connections that send nothing, or not all: others are answered all the same."""

import os
import re
import resource
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from advrisk.answers.records import default_url
from advrisk.answers.store import AnswerStore
from advrisk.core.errors import RunError
from advrisk.web import connections
from advrisk.web.connections import Connections, Limits, limits_here
from advrisk.web.notes import Notes

HALF_A_REQUEST = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_A_BODY = b"POST /l/x/answer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
WHOLE = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SERVER = """
import resource, sys
from advrisk.web import connections
limits = {limits!r}
if limits:
    connections.limits_here = lambda: connections.Limits(**limits)
from advrisk.cli import main
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
sys.argv = ["advrisk", "label", {run!r}, "--port", "0"]
main()
"""


class Served:
    """The page in a process of its own, with so many descriptors."""

    def __init__(self, run: Path, log: Path, files: int, limits: dict[str, Any]) -> None:
        code = SERVER.format(run=str(run), files=files, limits=limits)
        self._log, self.run = log, run
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"Operator's page: (http://127\.0\.0\.1:(\d+))(/o/.*)\n", line)
        assert found, line + self.log
        self.url, self.port, self.operator = found[1], int(found[2]), found[3]

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def n_sockets(self) -> int:
        """How many sockets the process holds."""
        there = 0
        for one in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                there += os.readlink(one).startswith("socket:")
        return there

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        with suppress(ConnectionError):
            made.sendall(sent)
        return made


Serve = Callable[..., Served]


@pytest.fixture
def serve(make_run: Callable[..., Path], tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def made(*, files: int = 1024, **limits: Any) -> Served:
            server = Served(make_run(), tmp_path / "log", files, limits)
            stack.callback(end, server)
            return server

        yield made


def end(server: Served) -> None:
    server.process.kill()
    server.process.communicate(timeout=30)


@contextmanager
def opened(server: Served, n: int, sent: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(server.connect(sent)) for _ in range(n)]


def closed(one: socket.socket, within_s: float) -> bool:
    """Whether the other end has closed the connection."""
    ends = time.monotonic() + within_s
    while select.select([one], [], [], max(0.0, ends - time.monotonic()))[0]:
        try:
            if not one.recv(65536):
                return True
        except ConnectionError:
            return True
    return False


def answer_one(client: httpx.Client, link: str) -> dict[str, Any]:
    question = client.get(f"{link}/question").json()
    for name in question["pictures"]:
        assert client.get(f"{link}/picture/{question['nonce']}/{name}.png").status_code == 200
    reply = client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": "changed"})
    assert reply.status_code == 200
    answer: dict[str, Any] = reply.json()
    return answer


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux shows them")
def test_with_few_descriptors_half_open_connections_keep_nobody_out(serve: Serve) -> None:
    server = serve(files=256)
    link = httpx.post(f"{server.url}{server.operator}/invite", json={"name": "Ann"}).json()["link"]
    kinds = [opened(server, 100, sent) for sent in (HALF_A_BODY, HALF_A_REQUEST, b"")]
    with kinds[0], kinds[1], kinds[2], httpx.Client(timeout=20) as client:
        assert answer_one(client, link)["n_answers"] == 1
        assert answer_one(client, link)["n_answers"] == 2
        assert 100 < server.n_sockets < 256 - connections.RESERVED
    assert len(server.log) < 2000, "quiet, and no traceback"
    assert "Traceback" not in server.log
    assert "made room for others" in server.log
    with AnswerStore.open(default_url(server.run)) as store:
        assert store.revision() == (2, 0)


def test_connections_that_do_not_finish_a_request_are_closed_in_time(serve: Serve) -> None:
    server = serve(request_s=1.0, most=100)
    for sent in (b"", HALF_A_REQUEST, HALF_A_BODY, WHOLE + HALF_A_REQUEST):
        with opened(server, 10, sent) as slow:
            with server.connect(WHOLE) as quick:
                assert quick.recv(100).startswith(b"HTTP/1.1 200")
            assert all(closed(one, 8) for one in slow), sent
    ends = time.monotonic() + 8
    with server.connect(HALF_A_REQUEST) as slow:
        while time.monotonic() < ends and not closed(slow, 0.2):
            with suppress(ConnectionError):
                slow.sendall(b"x")
        assert time.monotonic() < ends, "byte by byte is no faster"
    assert httpx.get(f"{server.url}/static/icon.svg").status_code == 200


def test_many_more_connections_than_there_may_be_leave_the_newest(serve: Serve) -> None:
    server = serve(most=40)
    with opened(server, 400, HALF_A_REQUEST) as slow, httpx.Client(base_url=server.url) as client:
        assert client.get("/static/icon.svg").status_code == 200
        assert all(closed(one, 2) for one in slow[:200])
    assert server.log.count("\n") <= 2
    assert "connections made room for others" in server.log


def test_too_few_descriptors_are_refused_with_a_remedy(serve: Serve) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + connections.RESERVED + 5, before[1]))
    try:
        with pytest.raises(RunError, match="say `ulimit -n 1024` first"):
            limits_here()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert limits_here().most <= Limits.most


def test_a_shortage_of_descriptors_is_noted_once_with_a_count() -> None:
    written: list[str] = []
    time_now = [0.0]
    notes = Notes(write=written.append, clock=lambda: time_now[0])
    pauses: list[float] = []
    limited = Connections(Limits(most=5), notes, pause=pauses.append)

    def take() -> Any:
        raise OSError(24, "Too many open files")

    for _ in range(2000):
        with pytest.raises(BlockingIOError):
            limited.accept(take)
    assert written == ["connections cannot be taken: Too many open files"]
    assert len(pauses) == 2000, "nor is the processor kept busy"
    time_now[0] = 61.0
    with pytest.raises(BlockingIOError):
        limited.accept(take)
    assert written[1:] == ["connections cannot be taken: Too many open files (2,000 times since this was last said)"]


def test_where_all_are_at_work_the_next_one_is_refused() -> None:
    written: list[str] = []
    limited = Connections(Limits(most=0), Notes(write=written.append))
    ours, theirs = socket.socketpair()
    with ours:
        with pytest.raises(BlockingIOError):
            limited.accept(lambda: (theirs, None))
        assert ours.recv(1000).startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n")
        assert ours.recv(1000) == b""
    assert written == ["connections were refused: 0 are being answered"]
