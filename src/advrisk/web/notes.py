"""What the server says of itself: each kind of message at once, then seldom and with a count."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 60.0


def write_error(text: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"advrisk: {text}\n")
    sys.stderr.flush()


class Notes:
    """Messages by kind: the first one is written, those of the next minute are counted."""

    def __init__(
        self,
        *,
        write: Callable[[str], object] = write_error,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._every_s, self._clock = write, every_s, clock
        self._lock = threading.Lock()
        self._written: dict[str, float] = {}  # kind -> when it was written last
        self._since: dict[str, tuple[int, str]] = {}  # kind -> how often it came since then, and the last text

    def add(self, text: str, *, kind: str | None = None) -> None:
        """Write a message, or count it if one of its kind (else of its text) was written lately."""
        kind = kind or text
        with self._lock:
            now, last = self._clock(), self._written.get(kind)
            n = self._since.pop(kind, (0, ""))[0] + 1
            if last is not None and now - last < self._every_s:
                self._since[kind] = (n, text)
                return
            self._written[kind] = now
            self._write(_counted(text, n))

    def finish(self) -> None:
        """Write what was only counted."""
        with self._lock:
            for n, text in self._since.values():
                self._write(_counted(text, n))
            self._since.clear()


def _counted(text: str, n: int) -> str:
    first, *others = text.split("\n")
    return "\n".join([first if n == 1 else f"{first} ({n:,} times since this was last said)", *others])


class _Handler(logging.Handler):
    """Hands the records of a library on, tracebacks with them."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        self._notes.add(self.format(record), kind=f"{record.name}: {record.msg}")


@contextmanager
def logged(notes: Notes, *names: str) -> Iterator[None]:
    """Note what these loggers are given."""
    handler, loggers = _Handler(notes), [logging.getLogger(name) for name in names]
    before = [one.propagate for one in loggers]
    for one in loggers:
        one.addHandler(handler)
        one.propagate = False
    try:
        yield
    finally:
        for one, propagate in zip(loggers, before, strict=True):
            one.removeHandler(handler)
            one.propagate = propagate
        notes.finish()
