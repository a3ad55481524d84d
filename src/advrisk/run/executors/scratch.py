"""Folders that last as long as their process, however that ends: what the killed leave behind, the next one removes."""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_DYING_S = 5.0


class Scratch:
    """A new folder below `home`; its owner holds a lock on it, which ends with the process."""

    def __init__(self, prefix: str, home: Path) -> None:
        sweep(prefix, home)
        unlocked = Path(tempfile.mkdtemp(prefix=".", dir=home))
        self._handle = os.open(unlocked, os.O_RDONLY)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.path = unlocked.rename(unlocked.with_name(prefix + unlocked.name.removeprefix(".")))  # locked before found

    def remove(self) -> None:
        """Remove it; others that are about to end may write into it for a moment yet."""
        ends = time.monotonic() + _DYING_S
        while self.path.exists() and time.monotonic() < ends:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def sweep(prefix: str, home: Path) -> None:
    """Remove the folders of that prefix whose owners are gone."""
    for folder in home.glob(f"{prefix}*"):
        with suppress(OSError):  # of another user, or removed meanwhile
            handle = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
