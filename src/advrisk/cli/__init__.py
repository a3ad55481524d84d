"""The command line: parse arguments, print; nothing else.

Exit codes: 0 done, 1 failed (a gate, a comparison, a certificate), 2 the user's mistake, 3 done with error rows, 4
undecided or not finished (a limit stopped the run), 70 an error of advrisk itself, 130 interrupted, 141 the reader of
what is printed has gone (`| head`).
"""

import os
import sys
import traceback
from collections.abc import Iterable
from typing import Any, TextIO, cast

from advrisk.core.errors import AdvriskError
from advrisk.core.extras import extras_named
from advrisk.core.names import visible
from advrisk.core.shortage import shortage

DONE, FAILED, MISTAKE, ERROR_ROWS, UNDECIDED, INTERNAL, INTERRUPTED, UNREAD = 0, 1, 2, 3, 4, 70, 130, 141


class _Printed:
    """Standard output, which remembers why it could not be written: its reader has gone, or its disk is full.

    Libraries in between end the program with 1 then, which has another meaning here.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.fault: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except OSError as error:
            self.fault = error
            raise

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            self.fault = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Visible:
    """A stream for people: what would steer their terminal is written out, whoever prints it.

    A return at the beginning of what is written stays: programs that users bring show their progress by it. Rich has
    codes of its own and writes past this; `render.terminal.Terminal` is the place for what it writes.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        begin = "\r" if text.startswith("\r") else ""
        self.rich_proxied_file.write(begin + visible(text.removeprefix("\r")))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def complain(text: object) -> None:
    """Write a message to standard error; lines after its first are indented: none passes for another message."""
    print("advrisk: " + visible(str(text)).replace("\n", "\n  "), file=sys.stderr, flush=True)


def main() -> None:
    """Entry point: errors that the user can put right are printed without a traceback."""
    before, errors = _opened(sys.stdout), _opened(sys.stderr)
    printed = _Printed(_on_own_descriptor(before))
    sys.stdout, sys.stderr = (cast(TextIO, _Visible(stream)) for stream in (cast(TextIO, printed), errors))
    try:
        code = _done(printed)
        if printed.fault is None:
            printed.flush()
    except OSError:
        if printed.fault is None:  # of nothing that was printed
            raise
    finally:
        sys.stdout, sys.stderr = before, errors
    if printed.fault is not None:
        code = _unwritten(printed)
    if printed.stream is not before:  # nothing that ends later adds to it
        printed.stream.close()
    sys.exit(code)


def _opened(stream: TextIO | None) -> TextIO:
    """A standard stream; one that leads nowhere where the caller closed it (`>&-`)."""
    return open(os.devnull, "w", encoding="utf-8") if stream is None else stream


def _on_own_descriptor(stream: TextIO) -> TextIO:
    """Standard output on a file descriptor of its own; what foreign code writes to descriptor 1 goes to standard error.

    The stream itself, where it does not lead to descriptor 1, as in a notebook.
    """
    try:
        if stream.fileno() != 1:
            return stream
        stream.flush()
        own = os.dup(1)
        os.dup2(2, 1)
    except (AttributeError, OSError, ValueError):  # StringIO, closed
        return stream
    by_line = getattr(stream, "line_buffering", False) or getattr(stream, "write_through", False)
    return open(own, "w", buffering=1 if by_line else -1, encoding=stream.encoding, errors=stream.errors)


def _done(printed: _Printed) -> Any:
    """Run the command; the exit code."""
    from advrisk.cli.app import app

    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        with extras_named(f"advrisk {verb}"):
            app(prog_name="advrisk")  # also as `python -m advrisk`
    except SystemExit as ended:  # as all commands do
        return ended.code
    except AdvriskError as error:
        complain(error)
        return MISTAKE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except Exception as error:  # Python would end with 1, which answers a question here: a gate fails
        if error is printed.fault:
            raise
        if message := shortage(error):
            complain(message)
            return MISTAKE
        traceback.print_exc()
        complain("an error of advrisk itself; please report it with the lines above")
        return INTERNAL
    return DONE


def _unwritten(printed: _Printed) -> int:
    """The exit code where standard output could not be written."""
    # What is left in memory goes nowhere, or Python would complain of it on its way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), printed.stream.fileno())
    if isinstance(printed.fault, BrokenPipeError):
        return UNREAD
    complain(f"standard output cannot be written: {printed.fault and printed.fault.strerror}")
    return MISTAKE
