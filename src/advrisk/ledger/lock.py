"""One writer at a time. The lock vanishes with the process that holds it, however it dies."""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.core.files import file_in_the_way, make_folder
from advrisk.ledger.sync.remote import url_of

_WAITS_S = (0.01, 0.05, 0.0)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or say who does. Of a URL, lock the folder of its `writable_storage`."""
    if url := url_of(folder):
        raise LedgerError(f"{url}: is no folder of this machine; write to it with `advrisk.ledger.writable_storage`")
    try:
        make_folder(folder)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LedgerError(f"{folder}: cannot be written to: {file_in_the_way(folder) or error.strerror}") from None
    try:
        if not _taken(handle):
            raise LedgerError(
                f"{folder}: {_name(handle)} is writing to this folder; wait for it to end, or choose another folder"
            )
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same, without a name
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}, since {now},".encode(), 0)
        yield
    finally:
        os.close(handle)


def holder(folder: Path) -> str | None:
    """Who holds the folder's lock, in words; None where nobody does."""
    try:
        handle = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _name(handle)
    except OSError:  # a file system without locks
        return None
    finally:
        os.close(handle)
    return None


def _taken(handle: int) -> bool:
    """Take the lock; somebody who only asks for its holder has it for a moment, too, so ask more than once."""
    for wait_s in _WAITS_S:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(wait_s)
        else:
            return True
    return False


def _name(handle: int) -> str:
    return os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
