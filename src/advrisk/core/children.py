"""Child processes: programs of their own that talk to their parent through a socket, and end with it.

They are no forks and no multiprocessing children, so that user scripts need no main guard.
"""

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_PR_SET_PDEATHSIG = 1


def start_child(module: str, env: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", Connection]:
    """Start `python -m MODULE FD`; the connection leads to the child's descriptor FD."""
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(
            # -P: nothing in the working folder can stand in for an installed package
            [sys.executable, "-P", "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=error_stream(),  # results own our output
            env=env,
            process_group=0,  # Ctrl-C is for the parent alone
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, Connection(ours.detach())


def error_stream() -> int:
    """Where children may print: standard error; nowhere if it was replaced by something that is no file."""
    with suppress(AttributeError, OSError, ValueError):  # None, StringIO, a notebook's stream
        return sys.stderr.fileno()
    return subprocess.DEVNULL


def cause_of_death(process: "subprocess.Popen[bytes]") -> str:
    """How a process ended, in a few words."""
    try:
        code = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return "it closed its connection"
    if code == -signal.SIGKILL:
        return "killed: often a sign that memory ran out"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def end_with_parent(handle: int) -> None:
    """Kill this process as soon as its parent ends, or the other end of this socket closes."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_after, args=(handle,), name="advrisk-parent", daemon=True).start()


def _end_after(handle: int) -> None:
    """Wait until nobody holds the other end; what can be read stays there."""
    waiting = select.poll()
    waiting.register(handle, 0)  # a hang-up is reported although nothing is asked for
    waiting.poll()
    os.kill(os.getpid(), signal.SIGKILL)
