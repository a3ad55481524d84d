"""Work that is done beside the requests, one piece at a time."""

import sys
import threading
import time
from collections.abc import Callable

_LONGEST_REST_S = 30.0
_LONGEST_END_S = 5.0  # work that lasts longer is left behind when the server ends


class Background:
    """A thread that works when there is something to notice; what is noticed meanwhile is one more piece of work.

    After long work it rests as long, so that the machine has time for others. `interrupt` makes the work end early.
    """

    def __init__(self, work: Callable[[], object], name: str, *, interrupt: Callable[[], object] | None = None) -> None:
        self._work, self._interrupt = work, interrupt
        self.failed = False  # whether the last piece of work did
        self._wake, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def notice(self) -> None:
        """Something may have changed: look when there is time."""
        self._wake.set()

    def stop(self) -> None:
        self._ended.set()
        self._wake.set()
        if self._interrupt is not None:
            self._interrupt()
        self._thread.join(_LONGEST_END_S)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._ended.is_set():
                return
            began = time.monotonic()
            self._try()
            self._ended.wait(min(time.monotonic() - began, _LONGEST_REST_S))

    def _try(self) -> None:
        """Whatever goes wrong, a database that is away for a moment, say: the next notice tries again."""
        try:
            self._work()
        except Exception as error:
            if not (self.failed or self._ended.is_set()):
                reason = f"{type(error).__name__}: {error}"
                sys.stderr.write(f"advrisk: the numbers are not up to date, and will be tried again ({reason})\n")
            self.failed = True
        else:
            self.failed = False
