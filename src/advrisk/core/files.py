"""Files that appear in full or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A path beside the target to write to; it takes the target's place when all went well, else it is removed."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")  # other processes may write the same
    try:
        yield unfinished
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
