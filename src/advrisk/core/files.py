"""Files and folders that appear in full or not at all; and JSON files, which somebody may have altered.

A file is on the disk before it has its name (write, fsync, rename, fsync of the folder): after a power cut it is the
old one or the new one, and what is written after it never tells of a file that is not there.
"""

import errno
import glob
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from advrisk.core.errors import LedgerError, RunError

# What it raises to read a JSON file, or to take its content apart, where it is not what was written.
NOT_AS_WRITTEN = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP)  # file systems that know no fsync of a folder
_UNFINISHED = re.compile(r"\..+\.(\d+)")


def regular(path: Path) -> Path:
    """The path itself; an OSError if it leads to a pipe, a socket or a device, which could be read without end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "is a pipe or a device, not a file", str(path))
    return path


@contextmanager
def whole_file(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path beside the target to write to; it takes the target's place when all went well, else it is removed.

    A copy of what lies elsewhere, which can be fetched again, need not be `durable`.
    """
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")  # other processes may write the same
    try:
        yield unfinished
        if durable:
            make_durable(unfinished)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    if durable:
        make_durable(target.parent)


def make_durable(path: Path) -> None:
    """Return once a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not path.is_dir() or error.errno not in _NO_FOLDERS:
            raise
    finally:
        os.close(handle)


def write_whole(target: Path, text: str, what: str = "") -> Path:
    """Write a text, in folders that are made if need be; `what` it is stands in the complaint if that fails."""
    try:
        make_folder(target.parent)
        with whole_file(target) as file:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = file_in_the_way(target.parent) or error.strerror
        raise RunError(f"{target}: {f'{what} ' if what else ''}cannot be written: {reason}") from None
    return target


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, but none at the root of the file system: such a path is mistyped, or a disk is
    not mounted.
    """
    missing = [path for path in (folder.absolute(), *folder.absolute().parents) if not path.exists()]
    if missing and missing[-1].parent == Path(missing[-1].anchor):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {missing[-1]}; make it first, or name another")
    folder.mkdir(parents=True, exist_ok=True)


def file_in_the_way(folder: Path) -> str:
    """What stands where a folder is to be, and what to do; empty where nothing does."""
    for path in (folder, *folder.parents):
        if path.is_dir():
            return ""
        if path.exists():
            return f"{path} is a file, and a folder is needed; choose another name, or move the file"
    return ""


def read_json(path: Path) -> Any:
    """What is in a JSON file; one of `NOT_AS_WRITTEN` where it cannot be read."""
    return json.loads(regular(path).read_text(encoding="utf-8"))


def write_json(target: Path, content: Any, *, indent: int = 1, advice: str = "") -> None:
    """Write a JSON file of a run, whose folder is made if need be; `advice` ends the complaint if that fails."""
    try:
        target.parent.mkdir(exist_ok=True)
        with whole_file(target) as file:
            file.write_text(json.dumps(content, indent=indent) + "\n", encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error.strerror}{advice}") from None


@contextmanager
def unfinished_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that is gone afterwards, unless it was renamed; those of killed processes go, too."""
    for other in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if _is_left_over(other.name):
            shutil.rmtree(other, ignore_errors=True)
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    make_folder(target.parent)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder to fill; it takes the place of the target, if there is one, when all went well, else it is removed."""
    with unfinished_folder(target) as folder:
        yield folder
        if not target.exists():
            folder.rename(target)
            return
        earlier = target.with_name(f".{target.name}.{os.getpid()}.earlier")
        target.rename(earlier)
        try:
            folder.rename(target)
        except OSError:
            with suppress(OSError):
                earlier.rename(target)
            raise
        shutil.rmtree(earlier, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Remove, below a folder, what `whole_file` left behind in processes that were killed; not in those that live."""
    for place, _, names in os.walk(folder):
        for name in names:
            if _is_left_over(name):
                with suppress(OSError):
                    os.unlink(os.path.join(place, name))


def _is_left_over(name: str) -> bool:
    found = _UNFINISHED.fullmatch(name)
    return found is not None and not _is_alive(int(found[1]))


def _is_alive(pid: int) -> bool:
    """Whether a process lives; one that has ended, and that nobody asked how, does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's, or a system that does not tell
        return True
    return state.split()[:1] not in (["Z"], ["X"])
