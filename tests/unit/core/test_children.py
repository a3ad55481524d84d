"""Processes that end with the one that started them, whatever they are doing."""

import io
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from advrisk.core.children import error_stream

# argv: the socket. It says that it is ready, then works for a minute.
WORKER = """
import ctypes, os, sys, time
from advrisk.core.children import end_with_parent
{before}
end_with_parent(int(sys.argv[1]))
os.write(1, b"ready")
{work}
"""
ASLEEP = "time.sleep(60)"
HOLDING_THE_LOCK = "ctypes.PyDLL(None).sleep(60)"
ELSEWHERE = "sys.platform = 'darwin'"  # no help of the kernel


def worker(work: str, before: str = "") -> str:
    return WORKER.format(before=before, work=work)


def gone(output: int, within_s: float = 10.0) -> bool:
    """Whether nobody can write to the other end of this pipe any more."""
    readable, _, _ = select.select([output], [], [], within_s)
    return bool(readable) and os.read(output, 1) == b""


@pytest.mark.parametrize("before", ["", ELSEWHERE])
def test_a_worker_ends_within_a_cell_when_its_connection_closes(before: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", worker(ASLEEP, before), str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"ready"
            theirs.close()
            ours.sendall(b"a cell")  # what is still to be read is no end
            assert process.poll() is None
            ours.close()
            assert process.wait(10) == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process that holds Python's lock")
def test_a_worker_that_holds_pythons_lock_ends_with_its_driver() -> None:
    driver = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], pass_fds=[int(sys.argv[1])])
time.sleep(60)
"""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = [sys.executable, "-c", driver, str(theirs.fileno()), worker(HOLDING_THE_LOCK)]
        with subprocess.Popen(words, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"ready"
            process.kill()
            process.wait()
            assert gone(process.stdout.fileno()), "the worker is still there"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_children_print_nowhere_if_standard_error_is_no_file(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert error_stream() == subprocess.DEVNULL


def test_children_print_to_standard_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        assert error_stream() == file.fileno()
