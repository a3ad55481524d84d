"""Files that appear in full or not at all."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_UNFINISHED = re.compile(r"\..+\.(\d+)")


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


def remove_unfinished(folder: Path) -> None:
    """Remove, below a folder, what `whole_file` left behind in processes that were killed; not in those that live."""
    for place, _, names in os.walk(folder):
        for name in names:
            found = _UNFINISHED.fullmatch(name)
            if found and not _is_alive(int(found[1])):
                with suppress(OSError):
                    os.unlink(os.path.join(place, name))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True
