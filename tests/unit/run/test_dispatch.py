"""In which order cells are handed out, and until when."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.core.errors import RunError
from advrisk.plan import Cell, Plan, Shard
from advrisk.run.dispatch import Dispatcher, Queue, always
from advrisk.run.executors.local import InProcess, WorkerPool
from advrisk.run.progress import Progress
from advrisk.run.pulse import OnShare
from advrisk.run.rows import CellResult
from advrisk.study import CLEAN


def plan() -> Plan:
    shards = tuple(Shard(f"s{number}", ("a",)) for number in range(3))
    return Plan((("one", CLEAN), ("two", CLEAN)), (), shards, {("one", CLEAN.id): "r1", ("two", CLEAN.id): "r2"})


@dataclass
class Worker:
    """Runs one cell after another, as if there were more like it."""

    n_workers: int

    def submit(
        self, cells: Iterable[Cell], *, may_begin: Callable[[], bool], on_share: OnShare
    ) -> Iterator[CellResult | None]:
        del on_share
        for cell in cells:
            if not may_begin():
                return
            yield CellResult(cell.id, {}, n_rows=1, n_errors=0, n_passes=3)


def dispatcher_of(executor: Any, **settings: Any) -> Dispatcher:
    writer: Any = SimpleNamespace(add=lambda _: None, publish_if_due=lambda: None)
    return Dispatcher(executor, writer, float("inf"), lambda _: None, Progress(6, 0), **settings)


def dispatched(dispatcher: Dispatcher) -> list[str]:
    cells: list[str] = []
    dispatcher.dispatch(plan().cells(), on_result=lambda result: cells.append(result.cell))
    return cells


def test_several_workers_take_the_longest_of_the_last_cells_first_and_one_keeps_the_order() -> None:
    planned = [cell.id for cell in plan().cells()]
    work = dict(zip(planned, (1.0, 1.0, 1.0, 1.0, 1.0, 2.0), strict=True))
    assert dispatched(dispatcher_of(Worker(1), work=lambda cell: work[cell.id])) == planned
    # When the fifth comes, the four before the last one are enough for two workers and twice the longest so far.
    expected = [planned[0], planned[-1], *planned[1:-1]]
    assert dispatched(dispatcher_of(Worker(2), work=lambda cell: work[cell.id])) == expected


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_nothing_is_begun_once_the_passes_are_spent_however_many_cells_were_looked_at(workers: int) -> None:
    dispatcher = dispatcher_of(Worker(workers), max_passes=7)
    assert len(dispatched(dispatcher)) == 3
    assert dispatcher.stopped


def test_passes_end_what_a_process_of_its_own_does_too() -> None:
    """The real ones, in this process and in workers: both ask before each cell."""
    nothing: Any = SimpleNamespace()

    def run_cell(cell: Cell, _: Any) -> CellResult:
        return CellResult(cell.id, {}, n_rows=1, n_errors=0, n_passes=3)

    assert len(dispatched(dispatcher_of(InProcess(run_cell, nothing), max_passes=7))) == 3
    assert list(WorkerPool(nothing, workers=4).submit(plan().cells(), may_begin=lambda: False)) == []


def test_a_worker_that_never_is_ready_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    spawned, spawn = [], WorkerPool._spawn
    monkeypatch.setattr(WorkerPool, "_spawn", lambda pool: (spawned.append(spawn(pool)), spawned[-1])[1])
    nothing: Any = SimpleNamespace(study=SimpleNamespace(max_cell_s=None), start_s=0.2)
    with pytest.raises(RunError, match=r"not ready within 0\.2 s\. Does a model hang"):
        list(WorkerPool(nothing, workers=1).submit(plan().cells()))
    assert spawned
    assert all(worker.process.poll() is not None for worker in spawned)


def cell(name: str, *needs: Cell) -> Cell:
    return Cell(name, "r", "plain", CLEAN, Shard("s", ("a",)), 0, needs)


def test_a_cell_waits_for_what_it_needs_and_others_pass_it() -> None:
    first, alone, later = cell("first"), cell("alone"), cell("later")
    moved = cell("moved", first)
    queue = Queue([first, moved, alone, later], always)
    assert queue.next() == first
    assert queue.next() == alone
    queue.finished("first")
    assert queue.next() == moved, "it has waited longest"
    assert queue.next() == later
    assert queue.next() is None


def test_nothing_is_handed_out_while_all_wait_and_nothing_is_lost() -> None:
    first = cell("first")
    moved = [cell(f"moved{number}", first) for number in range(3)]
    queue = Queue([first, *moved], always)
    assert queue.next() == first
    assert queue.next() is None
    queue.finished("first")
    assert [queue.next() for _ in range(4)] == [*moved, None]


def test_what_was_finished_in_an_earlier_run_is_not_waited_for() -> None:
    moved = cell("moved", cell("done before"))
    assert Queue([moved], always).next() == moved


def test_nothing_is_begun_once_it_may_not_be_however_long_it_waited() -> None:
    first = cell("first")
    may = [True]
    queue = Queue([first, cell("moved", first)], lambda: may[0])
    assert queue.next() == first
    assert queue.next() is None
    queue.finished("first")
    may[0] = False
    assert queue.next() is None
    assert queue.take(3) == ([], [])


def test_a_cell_that_needs_a_lost_one_is_told() -> None:
    first = cell("first")
    moved = cell("moved", first)
    queue = Queue([first, moved], always)
    assert queue.take(2) == ([first], [])
    queue.finished("first", lost=True)
    assert queue.take(2) == ([], [(moved, first)])
