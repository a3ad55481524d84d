"""What a run on Ray does when machines are lost, refuse, hang or never come; on a cluster that is pretended."""

import logging
from collections.abc import Iterable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.core.errors import RunError
from advrisk.plan import Cell
from advrisk.run.dispatch import Dispatcher, always
from advrisk.run.executors import ray as ray_executor
from advrisk.run.executors.local import GRACE_S, START_S, TICK_S
from advrisk.run.executors.ray import _PAUSE_S, SILENT_TRIES, START_TRIES, TRIES, RayExecutor
from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult
from tests.unit.run.executors.pretended import NEVER, Does, Far, Ray, cell, pretended


def cells(n: int) -> list[Cell]:
    return [cell(f"c{number:02d}") for number in range(n)]


def results(executor: RayExecutor, todo: Iterable[Cell], may_begin: Any = always) -> dict[str, CellResult]:
    return {found.cell: found for found in executor.submit(todo, may_begin=may_begin) if found is not None}


def outcome(found: CellResult) -> tuple[str, str]:
    row = found.tables["outcomes"].to_pylist()[0]
    return row["outcome"], row["message"]


def test_every_cell_is_carried_out_once_by_as_many_workers_as_there_is_room_for(monkeypatch: Any) -> None:
    ray = Ray(room=3)
    with pretended(ray, monkeypatch) as executor:
        assert executor.n_workers == 3
        assert sorted(results(executor, cells(10))) == [one.id for one in cells(10)]
    assert len(ray.hired) == 3
    assert len(ray.given) == 10
    assert all(far.killed for far in ray.hired)


def test_a_cluster_that_grows_is_used(monkeypatch: Any) -> None:
    ray = Ray(room=1)

    def grows(far: Far, one: Cell) -> Does:
        ray.room = 4
        return Does(10.0)

    ray.carries_out = grows
    with pretended(ray, monkeypatch) as executor:
        assert len(results(executor, cells(12))) == 12
    assert len(ray.hired) == 4


class TestPasses:
    def test_no_cell_is_begun_once_the_passes_are_spent(self, monkeypatch: Any) -> None:
        """Eight workers that take turns, and cells of one pass each."""
        ray = Ray(room=8, carries_out=lambda far, _: Does(1.0 + far.number / 10))
        begun: list[int] = []
        with pretended(ray, monkeypatch) as executor:
            dispatcher = Dispatcher(executor, Writer(), NEVER, lambda _: None, Progress(1000, 0), max_passes=10)  # type: ignore[arg-type]
            given = ray._given
            monkeypatch.setattr(
                ray, "_given", lambda far, one: begun.append(dispatcher.progress.n_passes) or given(far, one)
            )
            dispatcher.dispatch(cells(1000))
        assert max(begun) < 10
        assert dispatcher.progress.n_done == len(begun) <= 10 + 8 - 1, "those at work are finished"

    def test_what_waits_for_a_worker_is_not_begun_either(self, monkeypatch: Any) -> None:
        """One worker begins at once, seven take their time: cells were set aside for them."""
        ray = Ray(room=8, begins=lambda far: Does(1.0 if far.number == 1 else 60.0, said=""))
        done: list[str] = []
        with pretended(ray, monkeypatch) as executor:
            for found in executor.submit(cells(100), may_begin=lambda: len(done) < 10):
                done.extend([found.cell] if found is not None else [])
        assert len(done) == len(ray.given) == 10
        assert ray.now < 1060

    def test_time_that_is_over_leaves_what_was_not_begun_to_the_next_run(self, monkeypatch: Any) -> None:
        ray = Ray(room=2, begins=lambda _: Does(50.0, said=""))
        with pretended(ray, monkeypatch) as executor:
            assert results(executor, cells(5), lambda: ray.now < 1010) == {}
            assert ray.given == []
            assert len(results(executor, cells(5))) == 5
        assert len(ray.hired) == 2, "those that were about to begin are used by the next one"


class Writer:
    """Takes rows, and writes none."""

    def add(self, _: Any) -> None:
        """Nothing."""

    def publish_if_due(self) -> None:
        """Nothing."""


class TestLosses:
    def test_a_lost_cell_is_carried_out_elsewhere(self, monkeypatch: Any) -> None:
        ray = Ray(carries_out=lambda far, one: Does(lost="node died" if (far.number, one.id) == (1, "c00") else ""))
        with pretended(ray, monkeypatch) as executor:
            found = results(executor, cells(4))
        assert len(found) == 4
        assert not any(one.n_errors for one in found.values())
        assert sorted(name for _, name in ray.given) == ["c00", "c00", "c01", "c02", "c03"]

    def test_one_that_loses_every_worker_fails_and_nothing_else(self, monkeypatch: Any) -> None:
        ray = Ray(carries_out=lambda _, one: Does(lost="out of memory" if one.id == "c01" else ""))
        with pretended(ray, monkeypatch) as executor:
            found = results(executor, cells(6))
        assert outcome(found["c01"]) == (
            "error",
            f"lost {TRIES} workers of the Ray cluster, the last one: out of memory",
        )
        assert sum(one.n_errors for one in found.values()) == 1
        assert [name for _, name in ray.given].count("c01") == TRIES

    def test_what_needs_a_lost_cell_fails_and_is_not_begun(self, monkeypatch: Any) -> None:
        first = cell("first")
        ray = Ray(carries_out=lambda _, one: Does(lost="gone" if one.id == "first" else ""))
        with pretended(ray, monkeypatch) as executor:
            found = results(executor, [first, cell("moved", first), cell("other")])
        assert outcome(found["moved"]) == ("error", "clean failed on net, so there is nothing to transfer")
        assert "moved" not in {name for _, name in ray.given}
        assert not found["other"].n_errors

    def test_a_cell_does_not_pay_for_idle_workers_of_a_machine_that_is_gone(self, monkeypatch: Any) -> None:
        """More workers than a cell has tries rest for a while; whoever is asked then is not there any more."""
        ray = Ray(room=TRIES + 2)
        with pretended(ray, monkeypatch) as executor:
            assert len(results(executor, cells(TRIES + 2))) == TRIES + 2
            ray.now += 3 * TICK_S
            ray.carries_out = lambda far, _: Does(lost="its node has died" if far.number <= TRIES + 2 else "")
            found = results(executor, [cell("later")])
        assert not found["later"].n_errors
        assert [name for _, name in ray.given].count("later") > TRIES

    def test_one_who_has_just_answered_is_no_idle_one(self, monkeypatch: Any) -> None:
        ray = Ray(room=TRIES + 2)
        with pretended(ray, monkeypatch) as executor:
            results(executor, cells(TRIES + 2))
            ray.carries_out = lambda *_: Does(0.1, lost="gone")
            found = results(executor, [cell("later")])
        assert outcome(found["later"])[0] == "error"
        assert [name for _, name in ray.given].count("later") == TRIES


class TestSilence:
    def test_a_cell_that_hangs_is_tried_once_more_and_given_up(self, monkeypatch: Any) -> None:
        ray = Ray(carries_out=lambda _, one: Does(NEVER if one.id == "c00" else 1.0))
        with pretended(ray, monkeypatch, max_cell_s=5) as executor:
            found = results(executor, cells(3))
        assert outcome(found["c00"]) == ("timeout", "hung for more than 5 s and was stopped")
        tried = [when for when, name in ray.given if name == "c00"]
        assert len(tried) == SILENT_TRIES
        assert 5 + GRACE_S <= tried[1] - tried[0] <= 5 + GRACE_S + 2 + 2 * TICK_S
        assert sum(one.n_errors for one in found.values()) == 1

    def test_one_that_was_only_cut_off_gives_its_rows(self, monkeypatch: Any) -> None:
        ray = Ray(carries_out=lambda far, one: Does(NEVER if far.number == 1 else 1.0))
        with pretended(ray, monkeypatch, max_cell_s=5) as executor:
            assert not any(one.n_errors for one in results(executor, cells(3)).values())
        assert ray.hired[0].killed

    def test_without_a_limit_a_cell_may_take_an_hour(self, monkeypatch: Any) -> None:
        ray = Ray(carries_out=lambda *_: Does(3600.0))
        with pretended(ray, monkeypatch) as executor:
            assert len(results(executor, cells(2))) == 2


class TestStarts:
    def test_a_machine_of_another_version_ends_a_run_that_has_no_other(self, monkeypatch: Any) -> None:
        ray = Ray(begins=lambda _: Does(said="torch is 1.0 on old and 2.0 here; install the same one there"))
        with (
            pretended(ray, monkeypatch) as executor,
            pytest.raises(RunError, match=r"of the Ray cluster could not start: torch is 1\.0 on old"),
        ):
            results(executor, cells(3))
        assert all(far.killed for far in ray.hired)

    def test_one_that_comes_later_is_told_of_once_and_the_others_go_on(self, monkeypatch: Any, caplog: Any) -> None:
        ray = Ray(
            room=2, begins=lambda far: Does(said="" if far.number == 1 else "torch is 1.0 on old", after_s=far.number)
        )
        with pretended(ray, monkeypatch) as executor, caplog.at_level(logging.WARNING):
            found = results(executor, cells(40))
        assert len(found) == 40
        assert not any(one.n_errors for one in found.values())
        assert [record.getMessage() for record in caplog.records] == [
            "advrisk: a worker of the Ray cluster could not start: torch is 1.0 on old. Others go on"
        ]
        assert 2 < len(ray.hired) < 12, "it is tried again, and less and less often"
        assert all(far.was_given == [] for far in ray.hired[1:])

    def test_the_pause_after_each_that_is_stillborn_grows_until_the_run_gives_up(self, monkeypatch: Any) -> None:
        ray = Ray(room=1, begins=lambda _: Does(0.0, lost="it cannot import advrisk"))
        with (
            pretended(ray, monkeypatch) as executor,
            pytest.raises(RunError, match=f"{START_TRIES} workers .* could not start, the last one: it cannot import"),
        ):
            results(executor, cells(3))
        times = [far.hired_at for far in ray.hired]
        assert len(times) == START_TRIES
        for number, (before, after) in enumerate(pairwise(times), start=1):
            assert number * _PAUSE_S <= after - before <= number * _PAUSE_S + 2 * TICK_S

    def test_those_that_are_about_to_begin_are_waited_for(self, monkeypatch: Any) -> None:
        """Of a machine that was lost all new ones fail, while the others still load what they need."""
        ray = Ray(room=2, begins=lambda far: Does(90.0, said="") if far.number == 1 else Does(lost="no such machine"))
        with pretended(ray, monkeypatch) as executor:
            assert not any(one.n_errors for one in results(executor, cells(3)).values())
        assert len(ray.hired) > START_TRIES

    def test_where_some_have_begun_machines_were_lost_and_others_are_waited_for(self, monkeypatch: Any) -> None:
        begins = {1: Does(said=""), START_TRIES + 3: Does(said="")}
        ray = Ray(room=1, begins=lambda far: begins.get(far.number, Does(lost="no such machine")))
        ray.carries_out = lambda far, one: Does(lost="gone" if far.number == 1 else "")
        with pretended(ray, monkeypatch) as executor:
            assert not any(one.n_errors for one in results(executor, cells(3)).values())
        assert len(ray.hired) == START_TRIES + 3

    def test_one_that_begins_makes_up_for_those_before(self, monkeypatch: Any) -> None:
        ray = Ray(room=1, begins=lambda far: Does(lost="" if far.number % START_TRIES == 0 else "not yet", said=""))
        ray.carries_out = lambda far, one: Does(lost="gone" if one.id == "c00" and far.number <= START_TRIES else "")
        with pretended(ray, monkeypatch) as executor:
            assert not any(one.n_errors for one in results(executor, cells(3)).values())
        assert len(ray.hired) == 2 * START_TRIES

    @pytest.mark.parametrize("workers", [None, 4])
    def test_a_cluster_of_our_own_without_room_is_refused_at_once(self, monkeypatch: Any, workers: int | None) -> None:
        ray = Ray(room=0, is_ours=True, begins=lambda _: Does(NEVER))
        with (
            pretended(ray, monkeypatch, workers=workers, resources={"gpus": 0.5}) as executor,
            pytest.raises(RunError, match=r"no machine of the Ray cluster has 1 CPU and 0\.5 GPU, which `resources`"),
        ):
            results(executor, cells(3))
        assert ray.now < 1010

    def test_one_of_our_own_that_is_gone_is_told(self, monkeypatch: Any) -> None:
        ray = Ray(room=2, is_ours=True)

        def end(far: Far, one: Cell) -> Does:
            ray.room, ray.begins = 0, lambda _: Does(NEVER)
            return Does(lost="the raylet died")

        ray.carries_out = end
        with (
            pretended(ray, monkeypatch) as executor,
            pytest.raises(RunError, match="the Ray cluster of this run is gone"),
        ):
            results(executor, cells(3))

    def test_workers_that_are_asked_for_are_waited_for_until_they_come_or_ten_minutes(self, monkeypatch: Any) -> None:
        ray = Ray(room=0, begins=lambda _: Does(START_S - 30, said=""))
        with pretended(ray, monkeypatch, workers=2) as executor:
            assert len(results(executor, cells(3))) == 3
        ray = Ray(room=0, begins=lambda _: Does(NEVER))
        with (
            pretended(ray, monkeypatch, workers=2) as executor,
            pytest.raises(RunError, match="no worker with 1 CPU could begin within 600 s: the cluster is busy"),
        ):
            results(executor, cells(3))
        assert START_S < ray.now - 1000 < START_S + 5


@pytest.mark.parametrize(
    ("cpus", "workers", "expected"), [(0.5, 5, 3), (1, None, 2), (1, 4, 4), (0.25, 4, 2), (0.1, None, 2), (2, 3, 6)]
)
def test_a_cluster_that_is_started_here_has_whole_cores(
    monkeypatch: Any, cpus: float, workers: int | None, expected: int
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(ray_executor, "Cluster", lambda *_, cpus: asked.append(cpus) or SimpleNamespace(ray=None))
    bench: Any = SimpleNamespace(study=SimpleNamespace(resources=SimpleNamespace(cpus=cpus)))
    nothing: Any = None
    RayExecutor(nothing, bench, address=None, workers=workers, cores=2)
    assert asked == [expected]
    assert isinstance(asked[0], int)
