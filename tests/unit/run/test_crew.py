"""What is still to be run of a plan."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from advrisk.plan import Plan, Shard
from advrisk.run.crew import Unfinished
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
