"""Numpy archives from outside: no pickle, no more than a stated size, and no array that its file cannot hold."""

import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

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
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class ArchiveError(ValueError):
    """An archive that cannot be read as plain arrays; says why, and leaves the file to its reader to name."""


def read_archive(path: Path, *, max_bytes: int) -> dict[str, Array]:
    """Every array of an .npz file. FileNotFoundError if there is none; anything else wrong is an ArchiveError."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > max_bytes:
                raise ArchiveError(f"unpacks to more than {max_bytes >> 30} GiB")
            found = {}
            for entry in entries:
                with archive.open(entry) as file:
                    found[entry.filename.removesuffix(".npy")] = _array(file, entry)
            return found
    except (FileNotFoundError, ArchiveError):
        raise
    except DAMAGED as error:
        raise ArchiveError(f"cannot be read as an .npz of plain arrays: {error}") from None


def _array(file: IO[bytes], entry: zipfile.ZipInfo) -> Array:
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ArchiveError(f"{entry.filename} is of version {version}; 1.0 and 2.0 are read")
    shape, by_column, kind = _HEADERS[version](file)
    if kind.hasobject:
        raise ArchiveError(f"{entry.filename} holds Python objects, which are not loaded")
    content = file.read()  # to its end, where its check sum is
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != len(content):
        raise ArchiveError(f"{entry.filename} is said to have the shape {shape}, which is not what it holds")
    return np.ndarray(shape, kind, bytearray(content), order="F" if by_column else "C")
