"""What is still to be run of a plan, in which order, and until when."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.core.errors import RunError
from advrisk.plan import Cell, Plan, Shard
from advrisk.run import executors
from advrisk.run.crew import Crew, Unfinished
from advrisk.run.executors import InProcess, WorkerPool
from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult
from advrisk.study import CLEAN


def plan() -> Plan:
    shards = tuple(Shard(f"s{number}", ("a",)) for number in range(3))
    return Plan((("one", CLEAN), ("two", CLEAN)), (), shards, {("one", CLEAN.id): "r1", ("two", CLEAN.id): "r2"})


def test_all_cells_are_unfinished_at_first_and_come_as_often_as_they_are_asked_for() -> None:
    cells = Unfinished(plan(), frozenset())
    assert len(cells) == 6
    assert [cell.id for cell in cells] == [cell.id for cell in cells] == [cell.id for cell in plan().cells()]


def test_what_is_finished_is_left_out_and_what_others_finished_does_not_count() -> None:
    first, *others = plan().cells()
    cells = Unfinished(plan(), {first.id, "of an earlier study"})
    assert list(cells) == others
    assert len(cells) == 5
    assert first not in cells
    assert others[0] in cells


def test_nothing_is_left_of_a_plan_that_is_done() -> None:
    assert not Unfinished(plan(), {cell.id for cell in plan().cells()})


def test_what_took_over_points_of_a_cell_that_is_tried_again_is_run_again_too() -> None:
    crafting, other, third, *_ = plan().cells()
    transfer, sound = replace(third, id="transfer", needs=(crafting,)), replace(third, id="sound", needs=(other,))
    made: Any = SimpleNamespace(cells=lambda: iter([crafting, other, transfer, sound]))
    finished = {other.id, transfer.id, sound.id}
    assert list(Unfinished(made, finished, retry_errors=True)) == [crafting, transfer]
    assert list(Unfinished(made, finished)) == [crafting], "it was lost, say: the same points are made again"


@dataclass
class Worker:
    """Carries out one cell after another, as if there were more like it."""

    n_workers: int

    def run(self, cells: Iterable[Cell], *, may_begin: Callable[[], bool]) -> Iterator[CellResult | None]:
        for cell in cells:
            if not may_begin():
                return
            yield CellResult(cell.id, {}, n_rows=1, n_errors=0, n_passes=3)


def crew_of(executor: Any, **settings: Any) -> Crew:
    writer: Any = SimpleNamespace(add=lambda _: None, publish_if_due=lambda: None)
    return Crew(executor, writer, float("inf"), lambda _: None, Progress(6, 0), **settings)


def carried_out(crew: Crew) -> list[str]:
    found: list[str] = []
    crew.carry_out(plan().cells(), on_result=lambda result: found.append(result.cell))
    return found


def test_several_workers_take_the_longest_of_the_last_cells_first_and_one_keeps_the_order() -> None:
    planned = [cell.id for cell in plan().cells()]
    work = dict(zip(planned, (1.0, 1.0, 1.0, 1.0, 1.0, 2.0), strict=True))
    assert carried_out(crew_of(Worker(1), work=lambda cell: work[cell.id])) == planned
    # When the fifth comes, the four before the last one are enough for two workers and twice the longest so far.
    expected = [planned[0], planned[-1], *planned[1:-1]]
    assert carried_out(crew_of(Worker(2), work=lambda cell: work[cell.id])) == expected


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_nothing_is_begun_once_the_passes_are_spent_however_many_cells_were_looked_at(workers: int) -> None:
    crew = crew_of(Worker(workers), max_passes=7)
    assert len(carried_out(crew)) == 3
    assert crew.out_of_time


def test_passes_end_what_a_process_of_its_own_does_too() -> None:
    """The real ones, in this process and in workers: both ask before each cell."""
    bench: Any = SimpleNamespace(carry_out=lambda cell: CellResult(cell.id, {}, n_rows=1, n_errors=0, n_passes=3))
    assert len(carried_out(crew_of(InProcess(bench), max_passes=7))) == 3
    nobody: Any = None
    assert list(WorkerPool(nobody, workers=4).run(plan().cells(), may_begin=lambda: False)) == []


def test_a_worker_that_never_is_ready_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    monkeypatch.setattr(executors, "START_S", 0.2)
    spawned, spawn = [], WorkerPool._spawn
    monkeypatch.setattr(WorkerPool, "_spawn", lambda pool: (spawned.append(spawn(pool)), spawned[-1])[1])
    nothing: Any = SimpleNamespace(study=SimpleNamespace(max_cell_s=None))
    with pytest.raises(RunError, match=r"not ready within 0\.2 s\. Does a model hang"):
        list(WorkerPool(nothing, workers=1).run(plan().cells()))
    assert spawned
    assert all(worker.process.poll() is not None for worker in spawned)
