"""The command line: parse arguments, print; nothing else.

Exit codes: 0 done, 1 failed (a gate, a comparison, a certificate), 2 the user's mistake, 3 done with error rows, 4
undecided or not finished (a limit stopped the run), 130 interrupted, 141 the reader of what is printed has gone
(`| head`).
"""

import os
import sys
from typing import Any, TextIO, cast

from advrisk.core.errors import AdvriskError

DONE, FAILED, MISTAKE, ERROR_ROWS, UNDECIDED, INTERRUPTED, UNREAD = 0, 1, 2, 3, 4, 130, 141


class _Printed:
    """Standard output, which remembers whether its reader has gone.

    Libraries in between end the program with 1 then, which has another meaning here.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.unread = False

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            self.unread = True
            raise

    def flush(self) -> None:
        try:
            self.stream.flush()
        except BrokenPipeError:
            self.unread = True
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def main() -> None:
    """Entry point: errors that the user can put right are printed without a traceback."""
    before = sys.stdout
    printed = _Printed(_on_own_descriptor(before))
    sys.stdout = cast(TextIO, printed)
    try:
        code = _done()
        if not printed.unread:
            printed.flush()
    except BrokenPipeError:
        code = UNREAD
    finally:
        sys.stdout = before
    if printed.unread:
        # What is left in memory goes nowhere, or Python would complain of it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), printed.stream.fileno())
        code = UNREAD
    if printed.stream is not before:  # nothing that ends later adds to it
        printed.stream.close()
    sys.exit(code)


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
    except (AttributeError, OSError, ValueError):  # None, StringIO, closed
        return stream
    by_line = getattr(stream, "line_buffering", False) or getattr(stream, "write_through", False)
    return open(own, "w", buffering=1 if by_line else -1, encoding=stream.encoding, errors=stream.errors)


def _done() -> Any:
    """Carry out the command; the exit code."""
    from advrisk.cli.app import app

    try:
        app(prog_name="advrisk")  # also as `python -m advrisk`
    except SystemExit as ended:  # as all commands do
        return ended.code
    except AdvriskError as error:
        print(f"advrisk: {error}", file=sys.stderr)
        return MISTAKE
    except KeyboardInterrupt:
        print("advrisk: interrupted", file=sys.stderr)
        return INTERRUPTED
    return DONE
