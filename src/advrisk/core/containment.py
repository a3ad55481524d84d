"""Containment of foreign code: models, data sources, attacks and detectors of users and other packages.

Such code may end the process, change the working folder, or print without end. Here that becomes an error like any
other, is put back, and is cut off. What it prints goes to standard error: standard output belongs to the command.
"""

import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

from advrisk.core.errors import AdvriskError, ModelError

MOST_LINES, MOST_CHARACTERS = 20, 4_000  # that one owner prints in a process


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, as a signal handler of ours raises it: not a KeyboardInterrupt of foreign code."""


@contextmanager
def exits_as_errors(owner: str, error: type[AdvriskError] = ModelError) -> Iterator[None]:
    """Raise an error that names the owner where its code calls sys.exit or raises KeyboardInterrupt.

    What a signal handler raises passes: many a program has one for SIGTERM that calls sys.exit.
    """
    try:
        yield
    except SystemExit as ended:
        if _of_a_handler(ended):
            raise
        raise error(f"code of {owner} called sys.exit({_written(ended.code)}){_place(ended)}") from None
    except KeyboardInterrupt as ended:
        if _may_be_a_signal(ended):
            raise
        raise error(f"code of {owner} raised KeyboardInterrupt{_place(ended)}") from None


@dataclass(frozen=True)
class Containment:
    """Runs foreign code in a process, and remembers how much each owner has printed there."""

    _outputs: dict[str, "_Output"] = field(default_factory=dict)

    @contextmanager
    def around(self, owner: str, error: type[AdvriskError] = ModelError) -> Iterator[None]:
        """Contain what runs inside: its exits, what it prints, and the working folder it leaves."""
        before = _working_folder()
        target = sys.stderr.target if isinstance(sys.stderr, _Output) else sys.stderr
        output: Any = self._outputs.setdefault(owner, _Output(owner))
        output.target = target
        try:
            with redirect_stdout(output), redirect_stderr(output), exits_as_errors(owner, error):
                yield
        finally:
            if before is not None and _working_folder() != before:
                with suppress(OSError):  # it was removed
                    os.chdir(before)


class _Output(io.TextIOBase):
    """Standard error for one owner, up to so many lines and characters."""

    def __init__(self, owner: str) -> None:
        self.target: TextIO | None = None
        self._owner, self._lines, self._characters = owner, MOST_LINES, MOST_CHARACTERS

    def write(self, text: str) -> int:
        if self._lines <= 0 or self._characters <= 0 or self.target is None:
            return len(text)
        shown = "".join(text.splitlines(keepends=True)[: self._lines])[: self._characters]
        self._lines -= shown.count("\n")
        self._characters -= len(shown)
        with suppress(OSError, ValueError):  # standard error is closed, or full
            self.target.write(shown)
            if self._lines <= 0 or self._characters <= 0:
                begun = "" if shown.endswith("\n") else "\n"
                self.target.write(f"{begun}… further output of {self._owner} suppressed\n")
        return len(text)

    def flush(self) -> None:
        with suppress(AttributeError, OSError, ValueError):
            self.target.flush()  # type: ignore[union-attr]

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.target.fileno() if self.target is not None else super().fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.target, "encoding", None) or "utf-8"

    @property
    def rich_proxied_file(self) -> Any:
        """Where a progress bar of rich, which runs meanwhile, writes to: it is no output of the owner."""
        return getattr(self.target, "rich_proxied_file", self.target)

    @property
    def buffer(self) -> Any:
        return self.target.buffer  # type: ignore[union-attr]


def _written(code: object) -> str:
    return "" if code is None else repr(code)


def _place(error: BaseException) -> str:
    """` (nets.py, line 12)`: the last line of Python code that ran; empty where none is to be seen."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    frames = [frame for frame in frames if Path(frame.filename).name != "_sitebuiltins.py"]  # `exit()`
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _may_be_a_signal(error: KeyboardInterrupt) -> bool:
    """Whether the user may have pressed Ctrl-C. Workers ignore it, and the command line has a handler of its own."""
    if isinstance(error, Interrupted) or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True
    return _of_a_handler(error)


def _of_a_handler(error: BaseException) -> bool:
    """Whether a signal handler in Python raised it, in the middle of whatever ran then."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(handler: object) -> CodeType | None:
    return getattr(getattr(handler, "func", handler), "__code__", None)  # `func`: of functools.partial, as in asyncio


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return None
