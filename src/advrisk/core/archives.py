"""Numpy archives from outside: no pickle, no more than a stated size, and no array that its file cannot hold."""

import math
import re
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from advrisk.core.files import regular

Array = npt.NDArray[Any]

# What zipfile and numpy raise for files that are damaged, encrypted, or not theirs.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    ValueError,
    EOFError,
    OSError,
    KeyError,
    SyntaxError,
    TypeError,
    tokenize.TokenError,
)
_PIECE = 2**20
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class ArchiveError(ValueError):
    """An archive that cannot be read as plain arrays; says why, and leaves the file to its reader to name."""


def read_archive(path: Path, *, max_bytes: int) -> dict[str, Array]:
    """Every array of an .npz file. FileNotFoundError if there is none; anything else wrong is an ArchiveError."""
    try:
        with zipfile.ZipFile(regular(path)) as archive:
            entries = archive.infolist()
            _refuse_large(sum(entry.file_size for entry in entries), max_bytes)
            found = {}
            for entry in entries:
                with archive.open(entry) as file:
                    found[entry.filename.removesuffix(".npy")] = _array(file, entry)
            return found
    except (FileNotFoundError, ArchiveError):
        raise
    except MemoryError:
        raise ArchiveError("there is not enough memory to unpack it") from None
    except DAMAGED as error:
        raise ArchiveError(f"cannot be read as an .npz of plain arrays: {error}") from None


def _array(file: IO[bytes], entry: zipfile.ZipInfo) -> Array:
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ArchiveError(f"{entry.filename} is of version {version}; 1.0 and 2.0 are read")
    shape, by_column, kind = _HEADERS[version](file)
    if kind.hasobject:
        raise ArchiveError(f"{entry.filename} holds Python objects, which are not loaded")
    size = math.prod(shape) * kind.itemsize
    if min(shape, default=0) < 0 or size != entry.file_size - file.tell():
        raise ArchiveError(f"{entry.filename} is said to have the shape {shape}, which is not what it holds")
    return np.ndarray(shape, kind, _content(file, size), order="F" if by_column else "C")


def _content(file: IO[bytes], size: int) -> bytearray:
    """The rest of a member, unpacked into one buffer piece by piece: it is never in memory twice."""
    buffer, at = bytearray(size), 0
    while piece := file.read(_PIECE):  # to its end, where its check sum is
        buffer[at : at + len(piece)] = piece
        at += len(piece)
    if at != size:
        raise EOFError(f"{at} of {size} bytes are there")
    return buffer


def _refuse_large(n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise ArchiveError(f"unpacks to more than {max_bytes >> 30} GiB")
    free = free_memory()
    if free is not None and n_bytes > free:
        raise ArchiveError(f"unpacks to {n_bytes / 2**30:.1f} GiB, and only {free / 2**30:.1f} GiB of memory are free")


def free_memory() -> int | None:
    """Bytes of memory that a process may still take, as Linux tells it; None where nobody says."""
    told = [_told(Path("/proc/meminfo"), r"MemAvailable:\s+(\d+) kB", 1024)]
    most = _told(Path("/sys/fs/cgroup/memory.max"), r"(\d+)")  # of a container
    used = _told(Path("/sys/fs/cgroup/memory.current"), r"(\d+)")
    cache = _told(Path("/sys/fs/cgroup/memory.stat"), r"^inactive_file (\d+)")  # which makes room if need be
    if most is not None and used is not None:
        told.append(max(most - used + (cache or 0), 0))
    return min((one for one in told if one is not None), default=None)


def _told(path: Path, pattern: str, unit: int = 1) -> int | None:
    try:
        found = re.search(pattern, path.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return int(found[1]) * unit if found else None
