"""Those who carry out cells while a run lasts: results are written as they come, and whoever watches is told."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from advrisk.ledger import Ledger, SegmentWriter
from advrisk.plan import Cell, Plan
from advrisk.run.executors import Executor
from advrisk.run.finished import CellNames
from advrisk.run.longest import longest_last_first
from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult


class Crew:
    """An executor and a writer at work; `progress` is what was told last.

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
        self._max_passes, self._stopped = max_passes, False
        self._executor, self._writer = executor, writer
        self._deadline, self._on_progress = deadline, on_progress
        self._began = time.monotonic()

    @property
    def out_of_time(self) -> bool:
        """Whether nothing is begun any more, since time or passes ran out."""
        spent = self._max_passes is not None and self.progress.n_passes >= self._max_passes
        return self.is_late or self._stopped or spent

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def stop(self) -> None:
        """Begin nothing any more."""
        self._stopped = True

    def carry_out(self, cells: Iterable[Cell], on_result: Callable[[CellResult], None] = lambda _: None) -> None:
        """Carry out cells that `progress` counts already."""
        for result in self._executor.run(self._in_order(cells), may_begin=lambda: not self.out_of_time):
            if result is None:
                self._writer.publish_if_due()
                continue
            self._writer.add(result.tables)
            on_result(result)
            self.tell(self.progress.after(result, time.monotonic() - self._began))

    def _in_order(self, cells: Iterable[Cell]) -> Iterable[Cell]:
        """Whoever carries cells out: one worker as they are planned, several so that nobody waits for the last one."""
        workers = self._executor.n_workers
        return longest_last_first(cells, self._work, workers=workers) if workers > 1 else cells

    def carry_out_more(
        self,
        cells: Collection[Cell],
        *,
        phase: str,
        n_skipped: int = 0,
        on_result: Callable[[CellResult], None] = lambda _: None,
    ) -> None:
        """Carry out cells that nobody knew of before."""
        self.tell(self.progress.with_work(len(cells), n_skipped, phase))
        self.carry_out(cells, on_result)

    def publish(self) -> None:
        """Let everybody see what is finished."""
        self._writer.publish()

    def tell(self, progress: Progress) -> None:
        self.progress = progress
        self._on_progress(progress)


@dataclass(frozen=True)
class Unfinished:
    """The cells of a plan but for some, made one by one as they are asked for: a large plan has millions.

    With `retry_errors`, cells that took over the points of one that is run again are run again, too.
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
        return self._n_cells

    @cached_property
    def _n_cells(self) -> int:
        return sum(1 for _ in self) if self.finished else self.plan.n_cells

    def __contains__(self, cell: object) -> bool:
        return any(cell == one for one in self)


def unfinished_cells(plan: Plan, ledger: Ledger, *, retry_errors: bool = False) -> Unfinished:
    """The cells of a plan that are still to be run."""
    return Unfinished(plan, finished_cells(ledger, without_errors=retry_errors), retry_errors)


def finished_cells(ledger: Ledger, *, without_errors: bool = False) -> Set[str]:
    """The cells that need not be run again; a large plan has millions."""
    return CellNames(ledger.finished_names(without_errors=without_errors))
