"""Dispatch: cells go to an executor in an order that respects their needs; results go to the ledger as they come."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Protocol, Self

from advrisk.ledger import SegmentWriter
from advrisk.plan import Cell
from advrisk.run.forecast import Forecast
from advrisk.run.progress import Progress
from advrisk.run.pulse import OnShare, ignore_share
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

    def submit(
        self, cells: Iterable[Cell], *, may_begin: MayBegin = always, on_share: OnShare = ignore_share
    ) -> Iterator[CellResult | None]:
        """Run cells and yield results as they come, in any order; None now and then when there is nothing new.

        Cells come after those they need, and must not begin before those are finished. None begins once `may_begin`
        says no; those begun are finished. A cell that fails comes back as error rows. `on_share` receives the
        progress of running cells, if the executor reports it.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Dispatcher:
    """Dispatches cells to an executor, appends their rows, and reports progress.

    `work` says about how long a cell takes, so that several workers end almost together. `expected` are the cells that
    `progress` counts, one of each kind with the number of their samples.
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
        expected: Iterable[tuple[Cell, int]] = (),
    ) -> None:
        self._forecast = Forecast(work)
        self._forecast.expect(expected)
        self.progress = replace(progress, n_samples=self._forecast.n_samples)
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
        handed_out = self._handed_out(self._in_order(cells))
        for result in self._executor.submit(handed_out, may_begin=lambda: not self.stopped, on_share=self._on_share):
            if result is None:
                self._writer.publish_if_due()
                continue
            self._writer.add(result.tables)
            on_result(result)
            what = self._forecast.end(result.cell, result.wall_s)
            self.report(self.progress.after(result, what))

    def dispatch_more(
        self, cells: Collection[Cell], *, phase: str, on_result: Callable[[CellResult], None] = lambda _: None
    ) -> None:
        """Count further cells, then dispatch them."""
        self.expect(((cell, len(cell.shard.samples)) for cell in cells), n_cells=len(cells), phase=phase)
        self.dispatch(cells, on_result)

    def expect(self, cells: Iterable[tuple[Cell, int]], *, n_cells: int, n_skipped: int = 0, phase: str) -> None:
        """Count further cells: one of each kind with the number of their samples."""
        self._forecast.expect(cells)
        self.report(self.progress.with_work(n_cells, n_skipped, phase))

    def expect_no_more(self) -> None:
        """Count no cell that has not run."""
        self._forecast.stop()
        self.report(replace(self.progress, n_cells=self.progress.n_done))

    def publish(self) -> None:
        """Publish every finished cell now."""
        self._writer.publish()

    def report(self, progress: Progress) -> None:
        """Report progress, with samples and time as they stand now."""
        self.progress = replace(
            progress,
            n_samples=self._forecast.n_samples,
            n_partial=self._forecast.n_partial,
            elapsed_s=time.monotonic() - self._began,
            eta_s=self._forecast.seconds_left(self._executor.n_workers),
        )
        self._on_progress(self.progress)

    def _on_share(self, cell: str, n_done: float) -> None:
        self._forecast.share(cell, n_done)
        self.report(replace(self.progress, latest=""))

    def _handed_out(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        for cell in cells:
            self._forecast.begin(cell)
            yield cell

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
