"""The last of the work is taken longest first, and nothing else changes places."""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advrisk.plan import Cell, Shard
from advrisk.run.scheduling import expected_work, longest_last_first
from advrisk.study import CLEAN, Arm


def cell(name: str, *needs: Cell) -> Cell:
    return Cell(name, "r", "plain", CLEAN, Shard("s", ("a",)), 0, needs)


def ordered(work: dict[str, float], *, workers: int) -> list[str]:
    cells = [cell(name) for name in work]
    return [one.id for one in longest_last_first(cells, lambda one: work[one.id], workers=workers)]


def finish(amounts: list[float], workers: int) -> float:
    """When the last worker is done, if each takes the next cell as soon as it is free."""
    free = [0.0] * workers
    for amount in amounts:
        heapq.heapreplace(free, free[0] + amount)
    return max(free)


def test_only_the_last_cells_change_places() -> None:
    work = {"a": 1.0, "b": 4.0, "c": 1.0, "d": 1.0, "e": 2.0, "f": 1.0, "g": 4.0}
    # From the end: 4 + 1 + 2 + 1 are as much as one worker does in twice the longest cell.
    assert ordered(work, workers=1) == ["a", "b", "c", "g", "e", "d", "f"]


def test_cells_of_one_length_keep_their_order() -> None:
    assert ordered(dict.fromkeys("abcdef", 2.0), workers=2) == list("abcdef")


def test_with_many_workers_all_are_taken_longest_first() -> None:
    assert ordered({"a": 1.0, "b": 3.0, "c": 2.0}, workers=100) == ["b", "c", "a"]


def test_what_is_needed_comes_first_however_short() -> None:
    first = cell("first")
    cells = [first, cell("alone"), cell("moved", first)]
    work = {"first": 1.0, "alone": 5.0, "moved": 9.0}
    found = longest_last_first(cells, lambda one: work[one.id], workers=2)
    assert [one.id for one in found] == ["alone", "first", "moved"]


def test_nothing_to_do_is_nothing_to_order() -> None:
    assert list(longest_last_first([], lambda _: 1.0, workers=3)) == []


def test_of_a_long_plan_only_the_last_cells_are_held() -> None:
    asked: list[str] = []

    def plan() -> Iterator[Cell]:
        for number in range(1000):
            asked.append(str(number))
            yield cell(str(number))

    found = longest_last_first(plan(), lambda one: 1.0 + (int(one.id) % 3), workers=2)
    assert next(found).id == "0"
    assert len(asked) == 7, (
        "as much as two workers do in twice the longest cell, 12, beside the one that was handed out"
    )


def test_the_end_is_never_later_than_grahams_bound() -> None:
    """All orders of six cells are tried for the best end; 4/3 - 1/(3 m) times that is the bound for m workers."""
    rng = np.random.default_rng(5)
    for workers in (2, 3):
        for _ in range(20):
            work = {name: float(rng.integers(1, 10)) for name in "abcdef"}
            best = min(finish(list(amounts), workers) for amounts in permutations(work.values()))
            found = finish([work[name] for name in ordered(work, workers=100)], workers)
            assert found <= (4 / 3 - 1 / (3 * workers)) * best + 1e-9


@pytest.mark.parametrize("workers", [4, 16])
def test_a_plan_with_a_long_arm_at_its_end_ends_almost_together(workers: int) -> None:
    """Forty shards of nine short arms and one that is twenty times as long, which every shard has last."""
    work = {f"{shard}/{arm}": 20.0 if arm == 9 else 1.0 for shard in range(40) for arm in range(10)}
    least = sum(work.values()) / workers
    as_planned = finish(list(work.values()), workers)
    found = finish([work[name] for name in ordered(work, workers=workers)], workers)
    assert found <= as_planned
    assert found <= least + 20 / 2


def test_passes_are_those_at_most_and_what_nobody_knows_is_as_long_as_the_longest_known() -> None:
    def fails(*_: object) -> tuple[int, int]:
        raise KeyError("steps")

    def asked(*_: object) -> None:
        raise AssertionError("no detector is asked for an order")

    passes = {"short": lambda *_: (3, 2), "long": lambda *_: (30, 20), "unknown": None, "broken": fails}
    traits = {name: SimpleNamespace(passes=found, watches=False) for name, found in passes.items()}
    traits["watching"] = SimpleNamespace(passes=lambda *_: (900, 900), watches=True)
    attacks = {name: SimpleNamespace(traits=one) for name, one in traits.items()}
    model = SimpleNamespace(random=False, n_classes=10)
    bench: Any = SimpleNamespace(
        registries=SimpleNamespace(attacks=attacks), material=SimpleNamespace(models={"plain": model}), suspicion=asked
    )

    def of(name: str) -> Cell:
        return Cell(name, "r", "plain", Arm(name, "attack", name), Shard("s", ("a", "b")), 0)

    bench.suspicion = lambda _, arm: asked() if arm.family == "watching" else None
    work = expected_work(bench)
    assert work(of("unknown")) == 2 * 1.0, "nothing is known yet"
    assert work(of("short")) == 2 * (3 + 2 + 2), "with the judge's two"
    assert work(of("long")) == 2 * (30 + 20 + 2)
    work = expected_work(bench)
    work(of("long"))
    assert [work(of(name)) for name in ("unknown", "broken", "watching")] == 3 * [2 * 52.0]
    assert work(replace(of("clean"), arm=CLEAN)) == 2 * 1
