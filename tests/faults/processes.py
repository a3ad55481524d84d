"""Commands of advrisk in processes that can be killed, and what is left of them.

A command takes seconds to import torch, and so does each of its workers. Here both are copies of a process that has
imported everything (`preload`), which takes a tenth of that; whatever follows is as for users.
"""

import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

LAUNCHER = multiprocessing.get_context("forkserver")
LAUNCHER.set_forkserver_preload(["tests.faults.preload"])
DRIVER = "ADVRISK_FAULTS_DRIVER"  # the variable that tells which process is the driver
END_S = 300.0  # a command that takes longer hangs
GRACE_S = 1.0  # in place of ten seconds, that a hanging cell is given beyond its limit
START_S = 20.0  # in place of ten minutes, that a worker is given to load its material
VANISH_S = 15.0  # workers of a killed driver end at once; those on Ray finish their cell

Prepare = Callable[[], None]


class Command:
    """`advrisk …` in a process of its own, whose words, and those of all that it starts, go to a file."""

    def __init__(self, *words: object, folder: Path, log: Path, prepare: Prepare | None = None) -> None:
        self._process = LAUNCHER.Process(target=_carry_out, args=([*map(str, words)], folder, log, prepare))
        self._process.start()
        self.began = time.monotonic()
        self.log, self.word = log, words[0]

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def send(self, number: signal.Signals) -> None:
        """Send a signal, not before the command begins: until then it would strike what starts it."""
        while self.is_alive and not _begun(self.log).exists():
            time.sleep(0.001)
        if self.is_alive:
            os.kill(self.pid, number)

    def end(self) -> None:
        """Kill it, where it is still there, with all that it started."""
        for pid in (*descendants(self.pid), self.pid) if self.is_alive else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def code(self) -> int:
        """Its exit code, once it has ended; it must do so in time."""
        self._process.join(END_S)
        if self.is_alive:
            left = "".join(f"\n{pid} {command_line(pid)}" for pid in (self.pid, *descendants(self.pid)))
            self._process.kill()
            raise AssertionError(f"hangs for {END_S:g} s: {self.log.read_text()}{left}")
        assert self._process.exitcode is not None
        return self._process.exitcode


def _carry_out(words: list[str], folder: Path, log: Path, prepare: Prepare | None) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(folder)
    os.environ[DRIVER] = str(os.getpid())
    sys.argv = ["advrisk", *words]
    if prepare is not None:
        prepare()
    from advrisk.cli import main
    from advrisk.run.executors import local

    local.spawn_worker = _forked_worker
    local.GRACE_S, local.START_S = GRACE_S, START_S
    _begun(log).touch()
    main()


def _begun(log: Path) -> Path:
    """A file that says that a command begins."""
    return log.with_name(f"{log.name}-begun")


def without_report() -> None:
    """Leave out the report and the numbers at the end of a run, which take longer than the run."""
    from advrisk.api import run
    from advrisk.core.errors import RiskError

    def left_out(_: object) -> None:
        raise RiskError("left out")

    run.write_form = lambda done, path, form: done.folder / "report.html"  # type: ignore[assignment]
    run.Run.damage = left_out  # type: ignore[method-assign, assignment]


@dataclass
class _Forked:
    """What the pool of workers asks of a process."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        while self.poll() is None:
            time.sleep(0.002)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _forked_worker() -> Any:
    from advrisk.run.executors import local, worker

    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            handle = theirs.detach()
            os.closerange(3, handle)
            os.closerange(handle + 1, 4096)  # the lock and the ends of other workers among them
            worker.main(Connection(handle))
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    theirs.close()
    return local._Worker(_Forked(pid), Connection(ours.detach()))  # type: ignore[arg-type]


def cpu_s() -> float:
    """The CPU seconds of this process, and of all commands that have ended; not of those whose parents were killed."""
    ticks = _stat(forkserver._forkserver._forkserver_pid or 0)[11:15]  # type: ignore[attr-defined]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """All processes that a process has started, and those that they have."""
    found = [pid]
    parents = dict(_parents())
    for one in found:
        found += [child for child, parent in parents.items() if parent == one and child not in found]
    return found[1:]


def _parents() -> Iterator[tuple[int, int]]:
    for pid in _pids():
        if stat := _stat(pid):
            yield pid, int(stat[1])


def strays(folder: Path) -> list[str]:
    """Processes that write to files of a folder, as all do that are started for it, and are there after a while yet."""
    ends = time.monotonic() + VANISH_S
    while True:
        left = [pid for pid in _pids() if _belongs(pid, folder)]
        if not left or time.monotonic() > ends:
            return [f"{pid} {command_line(pid)}" for pid in left]
        time.sleep(0.02)


def _belongs(pid: int, folder: Path) -> bool:
    for stream in (1, 2):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{stream}").startswith(f"{folder}/"):
                return True
    return False


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """State, parent, group, session, …; nothing of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def command_line(pid: int) -> str:
    """How a process was started, or what it calls itself; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
