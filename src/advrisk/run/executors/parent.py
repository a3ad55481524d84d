"""Ending with the process that gave the work: whoever kills a driver means its workers, too.

Between cells a worker notices that its connection has closed. Within a cell, which may take hours, two others notice:
the kernel, where it can (Linux), and a thread that waits for the other end of the connection to close (everywhere, but
not while other code holds Python's lock).
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def end_with_parent(handle: int) -> None:
    """Kill this process as soon as its parent ends, or the other end of this socket closes."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_after, args=(handle,), name="advrisk-parent", daemon=True).start()


def _end_after(handle: int) -> None:
    """Wait until nobody holds the other end; what can be read stays there."""
    waiting = select.poll()
    waiting.register(handle, 0)  # a hang-up is reported although nothing is asked for
    waiting.poll()
    os.kill(os.getpid(), signal.SIGKILL)
