"""One writer at a time. The lock vanishes with the process that holds it, however it dies."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.ledger.remote import url_of


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or say who does. Of a URL, lock the copy that `working_folder` gives."""
    if url := url_of(folder):
        raise LedgerError(f"{url}: is no folder of this machine; write to it with `advrisk.ledger.working_folder`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LedgerError(f"{folder}: cannot be written to: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            raise LedgerError(
                f"{folder}: {holder} is writing to this folder; wait for it to end, or choose another folder"
            ) from None
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same, without a name
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}, since {now},".encode(), 0)
        yield
    finally:
        os.close(handle)
