"""Names of millions of cells, held in little memory."""

from collections.abc import Iterable, Iterator, Set

import numpy as np
import pyarrow as pa

NAME_BYTES = 16  # that thirty-two hexadecimal digits stand for: a set of text takes seven times as much


class CellNames(Set[str]):
    """A set of names. Those of thirty-two hexadecimal digits, as all planned cells have, take 16 bytes each."""

    def __init__(self, names: pa.ChunkedArray) -> None:
        self._others: set[str] = set()
        blocks = [self._block(part.to_pylist()) for part in _parts(names)]
        found = np.frombuffer(b"".join(blocks), dtype=f"S{NAME_BYTES}")
        self._sorted = np.unique(found)

    def _block(self, names: list[str]) -> bytes:
        """The bytes of a few names; those that are named otherwise are put aside."""
        if (block := _bytes_of("".join(names))) is not None and all(len(name) == 2 * NAME_BYTES for name in names):
            return block
        self._others |= {name for name in names if not _is_plain(name)}
        return b"".join(bytes.fromhex(name) for name in names if _is_plain(name))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if len(name) != 2 * NAME_BYTES or (wanted := _bytes_of(name)) is None:
            return name in self._others
        place = int(np.searchsorted(self._sorted, np.bytes_(wanted)))
        return place < len(self._sorted) and bool(self._sorted[place] == wanted.rstrip(b"\0"))

    def __iter__(self) -> Iterator[str]:
        yield from (bytes(name).ljust(NAME_BYTES, b"\0").hex() for name in self._sorted)
        yield from self._others

    def __len__(self) -> int:
        return len(self._sorted) + len(self._others)


def _parts(names: pa.ChunkedArray, size: int = 65_536) -> Iterable[pa.Array]:
    """A column piece by piece, so that no more text is held than that of one."""
    for chunk in names.chunks:
        yield from (chunk.slice(start, size) for start in range(0, len(chunk), size))


def _is_plain(name: str) -> bool:
    return len(name) == 2 * NAME_BYTES and _bytes_of(name) is not None


def _bytes_of(text: str) -> bytes | None:
    """What hexadecimal digits stand for; None where it is anything else, such as capital letters."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        return None
    return found if found.hex() == text else None
