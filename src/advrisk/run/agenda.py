"""In which order cells are handed out, whoever carries them out."""

import time
from collections.abc import Iterable

from advrisk.plan import Cell


class Agenda:
    """Cells in their order, but each only when those it needs are finished. They come after those they need."""

    def __init__(self, cells: Iterable[Cell], deadline: float) -> None:
        self._todo = iter(cells)
        self._deadline = deadline
        self._waiting: list[Cell] = []
        self._unfinished: set[str] = set()  # handed out or waiting
        self._lost: set[str] = set()

    def next(self) -> Cell | None:
        """The next cell that can be begun; None if there is none now."""
        if time.monotonic() > self._deadline:
            return None
        for place, cell in enumerate(self._waiting):
            if self._is_ready(cell):
                return self._waiting.pop(place)
        for cell in self._todo:
            ready = self._is_ready(cell)
            self._unfinished.add(cell.id)
            if ready:
                return cell
            self._waiting.append(cell)
        return None

    def finished(self, cell: str, *, lost: bool = False) -> None:
        """A cell is over; `lost` with the process that carried it out."""
        self._unfinished.discard(cell)
        if lost:
            self._lost.add(cell)

    def again(self, cell: Cell) -> None:
        """A cell that was handed out and must be carried out once more: before all others."""
        self._waiting.insert(0, cell)

    def lost_need(self, cell: Cell) -> Cell | None:
        """A cell that this one needs and that was lost: carried out again, it would be lost again."""
        return next((need for need in cell.needs if need.id in self._lost), None)

    def _is_ready(self, cell: Cell) -> bool:
        return not any(need.id in self._unfinished for need in cell.needs)
