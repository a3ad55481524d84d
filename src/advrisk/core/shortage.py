"""Too many open files, or too little memory: a limit of the machine, which says nothing of the files.

What reads a ledger asks here before it calls a file damaged; the command line asks before it shows a traceback.
"""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advrisk.core.errors import LedgerError

_FILES = (errno.EMFILE, errno.ENFILE)
_FILES_TEXT = "Too many open files"  # DuckDB and Arrow keep it in their messages alone
_MEMORY_TEXTS = ("Out of Memory", "Cannot allocate memory", "std::bad_alloc", "malloc of size", "realloc of size")
_MEMORY = (
    "memory ran out. End other programs, allow more (`ulimit -v unlimited`, or a larger container), or use a machine "
    "with more memory, then run the same command again. This says nothing of any file"
)
_NEEDED_BYTES = 512 * 2**20  # measured: with less, DuckDB's threads may not start


class ShortageError(LedgerError):
    """The limits of the machine do not let a ledger be read; its files may be whole."""


def refuse_shortage(error: BaseException) -> None:
    """Raise a ShortageError where an error says that files or memory ran out; else do nothing."""
    if message := shortage(error):
        raise ShortageError(message) from None


def refuse_little_memory() -> None:
    """Raise a ShortageError where a limit (`ulimit -v`) leaves too little for DuckDB, which would crash the process."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except FileNotFoundError:  # another system than Linux
        return
    if limit - pages * resource.getpagesize() < _NEEDED_BYTES:
        raise ShortageError(_MEMORY)


@contextmanager
def shortage_named() -> Iterator[None]:
    """Make a ShortageError of what says that files or memory ran out; also a decorator."""
    try:
        yield
    except (MemoryError, OSError) as error:
        refuse_shortage(error)
        raise


def shortage(error: BaseException) -> str:
    """What ran out, and what to do; empty where an error has another cause."""
    if isinstance(error, ShortageError):
        return str(error)
    number, text = getattr(error, "errno", None), str(error)
    if number in _FILES or _FILES_TEXT in text:
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return (
            f"too many open files: this process may open {allowed}. Allow more (`ulimit -n 4096`), or merge segments "
            "with `advrisk ledger compact RUN`, then run the same command again. This says nothing of any file"
        )
    if isinstance(error, MemoryError) or number == errno.ENOMEM or any(one in text for one in _MEMORY_TEXTS):
        return _MEMORY
    return ""
