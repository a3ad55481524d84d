"""In which order cells are handed out, whoever carries them out."""

from collections.abc import Callable, Iterable

from advrisk.plan import Cell

MayBegin = Callable[[], bool]  # whether another cell may be begun: time, or passes, may have run out


class Agenda:
    """Cells in their order, but each only when those it needs are finished. They come after those they need."""

    def __init__(self, cells: Iterable[Cell], may_begin: MayBegin) -> None:
        self._todo = iter(cells)
        self._may_begin = may_begin
        self._waiting: list[Cell] = []
        self._unfinished: set[str] = set()  # handed out or waiting
        self._lost: set[str] = set()

    def take(self, most: int) -> tuple[list[Cell], list[tuple[Cell, Cell]]]:
        """At most so many cells to begin now; and those that never can be, each with the lost one that it needs."""
        taken: list[Cell] = []
        hopeless: list[tuple[Cell, Cell]] = []
        while len(taken) < most and (cell := self.next()):
            if need := self._lost_need(cell):
                self.finished(cell.id, lost=True)
                hopeless.append((cell, need))
            else:
                taken.append(cell)
        return taken, hopeless

    def next(self) -> Cell | None:
        """The next cell that can be begun; None if there is none now."""
        if not self._may_begin():
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

    def _lost_need(self, cell: Cell) -> Cell | None:
        """A cell that this one needs and that was lost: carried out again, it would be lost again."""
        return next((need for need in cell.needs if need.id in self._lost), None)

    def _is_ready(self, cell: Cell) -> bool:
        return not any(need.id in self._unfinished for need in cell.needs)
