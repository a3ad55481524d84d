"""The finished and the unfinished cells of a plan, which may have millions."""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from advrisk.ledger import Ledger
from advrisk.plan import Cell, Plan

NAME_BYTES = 16  # that thirty-two hexadecimal digits stand for: a set of text takes seven times as much


def unfinished_cells(plan: Plan, ledger: Ledger, *, retry_errors: bool = False) -> "Unfinished":
    """The cells of a plan that are still to run."""
    return Unfinished(plan, finished_cells(ledger, without_errors=retry_errors), retry_errors)


def finished_cells(ledger: Ledger, *, without_errors: bool = False) -> Set[str]:
    """The cells that need not run again."""
    return CellNames(ledger.finished_names(without_errors=without_errors))


@dataclass(frozen=True)
class Unfinished:
    """The cells of a plan except the finished ones, generated one by one.

    With `retry_errors`, cells that transfer the points of a cell that runs again run again, too.
    """

    plan: Plan
    finished: Set[str]
    retry_errors: bool = False

    def __iter__(self) -> Iterator[Cell]:
        return (cell for cell in self.plan.cells() if not self._is_finished(cell))

    def _is_finished(self, cell: Cell) -> bool:
        if self.retry_errors and any(need.id not in self.finished for need in cell.needs):
            return False
        return cell.id in self.finished

    def __len__(self) -> int:
        return self._counts[0]

    @property
    def by_kind(self) -> list[tuple[Cell, int]]:
        """A cell of each model and arm, with the number of samples of all that are like it."""
        return list(self._counts[1].values())

    @cached_property
    def _counts(self) -> tuple[int, dict[tuple[str, str], tuple[Cell, int]]]:
        """How many cells, and how many samples of each kind; of a plan that has not begun, without making each cell."""
        plan = self.plan
        if not self.finished:
            first = replace(plan, shards=plan.shards[:1]).cells()
            n = sum(len(shard.samples) for shard in plan.shards)
            return plan.n_cells, {(cell.model, cell.arm.id): (cell, n * cell.arm.repeats) for cell in first}
        n_cells, of_kind = 0, dict[tuple[str, str], tuple[Cell, int]]()
        for cell in self:
            n_cells += 1
            kind = cell.model, cell.arm.id
            example, before = of_kind.get(kind, (cell, 0))
            of_kind[kind] = example, before + len(cell.shard.samples)
        return n_cells, of_kind

    def __contains__(self, cell: object) -> bool:
        return any(cell == one for one in self)


class CellNames(Set[str]):
    """A set of names. Those of thirty-two hexadecimal digits, as all planned cells have, take 16 bytes each."""

    def __init__(self, names: pa.ChunkedArray) -> None:
        self._others: set[str] = set()
        blocks = [self._block(part.to_pylist()) for part in _parts(names)]
        self._sorted = np.unique(np.frombuffer(b"".join(blocks), dtype=f"S{NAME_BYTES}"))

    def _block(self, names: list[str]) -> bytes:
        """The bytes of some names; names of another form go to `_others`."""
        if (block := _bytes_of("".join(names))) is not None and all(len(name) == 2 * NAME_BYTES for name in names):
            return block
        self._others |= {name for name in names if not _is_plain(name)}
        return b"".join(bytes.fromhex(name) for name in names if _is_plain(name))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if len(name) != 2 * NAME_BYTES or (wanted := _bytes_of(name)) is None:
            return name in self._others
        position = int(np.searchsorted(self._sorted, np.bytes_(wanted)))
        return position < len(self._sorted) and bool(self._sorted[position] == wanted.rstrip(b"\0"))

    def __iter__(self) -> Iterator[str]:
        yield from (bytes(name).ljust(NAME_BYTES, b"\0").hex() for name in self._sorted)
        yield from self._others

    def __len__(self) -> int:
        return len(self._sorted) + len(self._others)


def _parts(names: pa.ChunkedArray, size: int = 65_536) -> Iterable[pa.Array]:
    """A column in pieces, so that only the text of one is in memory."""
    for chunk in names.chunks:
        yield from (chunk.slice(start, size) for start in range(0, len(chunk), size))


def _is_plain(name: str) -> bool:
    return len(name) == 2 * NAME_BYTES and _bytes_of(name) is not None


def _bytes_of(text: str) -> bytes | None:
    """The bytes of hexadecimal digits; None for any other text, such as capital letters."""
    try:
        content = bytes.fromhex(text)
    except ValueError:
        return None
    return content if content.hex() == text else None
