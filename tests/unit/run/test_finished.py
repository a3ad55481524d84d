"""What is still to run of a plan; names of cells in little memory are a set like any other."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from advrisk.core.digest import digest
from advrisk.plan import Plan, Shard
from advrisk.run import finished
from advrisk.run.finished import CellNames, Unfinished
from advrisk.study import CLEAN


def names(n: int) -> list[str]:
    return [digest(number) for number in range(n)]


def column(*chunks: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())


def test_it_holds_what_it_was_given_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished._parts, "__defaults__", (64,))
    every = names(1000)
    held = CellNames(column(every[:300], [], every[300:700], every[:10]))
    assert len(held) == 700
    assert all(name in held for name in every[:700])
    assert not any(name in held for name in every[700:])
    assert set(held) == set(every[:700])
    assert held == set(every[:700])


@pytest.mark.parametrize("name", ["00" * 16, "ff" * 16, "ab" + "00" * 15, "00" * 15 + "01", "0a" * 15 + "00"])
def test_zeros_at_either_end_are_digits_like_others(name: str) -> None:
    held = CellNames(column([name, "12" * 16]))
    assert name in held
    assert set(held) == {name, "12" * 16}
    assert ("00" * 16 in held) == (name == "00" * 16)


def test_names_that_are_no_digests_are_told_apart_to_the_letter() -> None:
    others = ["c1", "", "AB" * 16, "ab " * 10 + "ab", "ab" * 15, "ab" * 17, "é" * 32, "cell-recipe-hardened-pgd-linf-0"]
    held = CellNames(column([*others, "ab" * 16]))
    assert set(held) == {*others, "ab" * 16}
    assert all(name in held for name in others)
    assert "ab" * 14 not in held
    assert "Ab" * 16 not in held
    assert 7 not in held
    assert None not in held


def test_nothing_is_in_nothing() -> None:
    assert len(CellNames(column())) == 0
    assert "ab" * 16 not in CellNames(column([]))


def test_a_name_takes_sixteen_bytes() -> None:
    rng = np.random.default_rng(0)
    held = CellNames(column([row.tobytes().hex() for row in rng.integers(0, 256, (5000, 16), np.uint8)]))
    assert held._sorted.nbytes == 16 * 5000


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
