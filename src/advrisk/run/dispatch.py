"""Dispatch: cells go to an executor in an order that respects their needs; results go to the ledger as they come."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol, Self

from advrisk.ledger import SegmentWriter
from advrisk.plan import Cell
from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult
from advrisk.run.scheduling import longest_last_first

MayBegin = Callable[[], bool]  # whether another cell may begin: time, or passes, may have run out


def always() -> bool:
    """No limit."""
    return True


class Executor(Protocol):
    """Runs cells somewhere; as a context manager, it stays ready between one `submit` and the next."""

    @property
    def n_workers(self) -> int:
        """How many cells it runs at a time."""

    def submit(self, cells: Iterable[Cell], *, may_begin: MayBegin = always) -> Iterator[CellResult | None]:
        """Run cells and yield results as they come, in any order; None now and then when there is nothing new.

        Cells come after those they need, and must not begin before those are finished. None begins once `may_begin`
        says no; those begun are finished. A cell that fails comes back as error rows.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Dispatcher:
    """Dispatches cells to an executor, appends their rows, and reports progress.

    `work` says about how long a cell takes, so that several workers end almost together.
    """

    def __init__(
        self,
        executor: Executor,
        writer: SegmentWriter,
        deadline: float,
        on_progress: Callable[[Progress], None],
        progress: Progress,
        *,
        max_passes: int | None = None,
        work: Callable[[Cell], float] = lambda _: 1.0,
    ) -> None:
        self.progress = progress
        self._work = work
        self._max_passes, self._was_stopped = max_passes, False
        self._executor, self._writer = executor, writer
        self._deadline, self._on_progress = deadline, on_progress
        self._began = time.monotonic()

    @property
    def stopped(self) -> bool:
        """Whether no cell begins any more: time or passes ran out, or `stop` was called."""
        spent = self._max_passes is not None and self.progress.n_passes >= self._max_passes
        return self.past_deadline or self._was_stopped or spent

    @property
    def past_deadline(self) -> bool:
        return time.monotonic() > self._deadline

    def stop(self) -> None:
        """Begin no other cell."""
        self._was_stopped = True

    def dispatch(self, cells: Iterable[Cell], on_result: Callable[[CellResult], None] = lambda _: None) -> None:
        """Have cells run that `progress` counts already, and append their rows."""
        for result in self._executor.submit(self._in_order(cells), may_begin=lambda: not self.stopped):
            if result is None:
                self._writer.publish_if_due()
                continue
            self._writer.add(result.tables)
            on_result(result)
            elapsed_s, n_workers = time.monotonic() - self._began, self._executor.n_workers
            self.report(self.progress.after(result, elapsed_s, n_workers))

    def dispatch_more(
        self, cells: Collection[Cell], *, phase: str, on_result: Callable[[CellResult], None] = lambda _: None
    ) -> None:
        """Count further cells, then dispatch them."""
        self.report(self.progress.with_work(len(cells), 0, phase))
        self.dispatch(cells, on_result)

    def publish(self) -> None:
        """Publish every finished cell now."""
        self._writer.publish()

    def report(self, progress: Progress) -> None:
        self.progress = progress
        self._on_progress(progress)

    def _in_order(self, cells: Iterable[Cell]) -> Iterable[Cell]:
        """The planned order for one worker; for several, one in which none waits long for the last cell."""
        workers = self._executor.n_workers
        return longest_last_first(cells, self._work, workers=workers) if workers > 1 else cells


class Queue:
    """Cells in their order, each handed out only once the cells it needs are finished."""

    def __init__(self, cells: Iterable[Cell], may_begin: MayBegin) -> None:
        self._todo = iter(cells)
        self._may_begin = may_begin
        self._waiting: list[Cell] = []
        self._unfinished: set[str] = set()  # handed out or waiting
        self._lost: set[str] = set()

    def take(self, most: int) -> tuple[list[Cell], list[tuple[Cell, Cell]]]:
        """At most so many cells to begin now; and those that never can, each with the lost cell that it needs."""
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
        """The next cell that can begin; None if there is none now."""
        if not self._may_begin():
            return None
        for position, cell in enumerate(self._waiting):
            if self._is_ready(cell):
                return self._waiting.pop(position)
        for cell in self._todo:
            ready = self._is_ready(cell)
            self._unfinished.add(cell.id)
            if ready:
                return cell
            self._waiting.append(cell)
        return None

    def finished(self, cell: str, *, lost: bool = False) -> None:
        """Mark a cell as finished; `lost` with the process that ran it."""
        self._unfinished.discard(cell)
        if lost:
            self._lost.add(cell)

    def put_back(self, cell: Cell) -> None:
        """Return a cell that was handed out: it goes out again before all others."""
        self._waiting.insert(0, cell)

    def _lost_need(self, cell: Cell) -> Cell | None:
        """A lost cell that this one needs: run again, it would be lost again."""
        return next((need for need in cell.needs if need.id in self._lost), None)

    def _is_ready(self, cell: Cell) -> bool:
        return not any(need.id in self._unfinished for need in cell.needs)
