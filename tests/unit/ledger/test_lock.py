"""One writer at a time, across real processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import locked

HOLD = """
import subprocess, sys
from pathlib import Path
from advrisk.ledger import locked
with locked(Path(sys.argv[1])):
    if "child" in sys.argv:  # a worker that outlives its parent
        subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdout=subprocess.DEVNULL)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock until its standard input is closed."""
    command = [sys.executable, "-c", HOLD, str(folder), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait()


def test_a_second_process_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        with pytest.raises(LedgerError) as caught, locked(tmp_path):
            pass
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}: process {first.pid} on {socket.gethostname()}, since ")
        assert message.endswith("is writing to this folder; wait for it to end, or choose another folder")
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("words", [(), ("child",)])
def test_the_lock_vanishes_with_a_killed_process(tmp_path: Path, words: tuple[str, ...]) -> None:
    with holder(tmp_path, *words) as first:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        with locked(tmp_path):
            pass


def test_the_next_holder_puts_its_own_name(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        first.kill()
        first.wait()
    with locked(tmp_path), pytest.raises(LedgerError) as caught, locked(tmp_path):
        pass
    assert f"process {os.getpid()} on " in str(caught.value)
    assert str(first.pid) not in str(caught.value).replace(str(tmp_path), "").replace(str(os.getpid()), "")


def test_nothing_is_left_of_a_longer_earlier_name(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("process 1 on " + "long-gone-" * 15)
    with locked(tmp_path), pytest.raises(LedgerError, match=f"process {os.getpid()} on ") as caught, locked(tmp_path):
        pass
    assert "long-gone" not in str(caught.value)


def test_an_error_inside_releases_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass


def test_a_refused_second_does_not_take_the_lock_from_the_first(tmp_path: Path) -> None:
    with locked(tmp_path):
        for _ in range(2):
            with pytest.raises(LedgerError, match="is writing to this folder"), locked(tmp_path):
                pass


def test_two_folders_are_two_locks(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "deep"), locked(tmp_path / "b"):
        assert (tmp_path / "a" / "deep").is_dir()


def test_a_lock_without_a_name_still_holds(tmp_path: Path) -> None:
    with locked(tmp_path):
        os.truncate(tmp_path / "lock", 0)
        with pytest.raises(LedgerError, match="another process is writing"), locked(tmp_path):
            pass


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LedgerError, match="file is a file, and a folder is needed; choose another name"),
        locked(tmp_path / "file"),
    ):
        pass
    with pytest.raises(LedgerError, match="file is a file, and a folder is needed"), locked(tmp_path / "file" / "x"):
        pass
