"""How many workers there are on this machine."""

from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.run.executors import choice
from advrisk.run.executors.choice import choose_executor, worker_count
from advrisk.run.executors.local import InProcess, WorkerPool
from advrisk.run.options import Options
from advrisk.study import ResourcesSpec


def bench(resources: ResourcesSpec, device: str) -> Any:
    models = {"net": SimpleNamespace(device=device)}
    return SimpleNamespace(study=SimpleNamespace(resources=resources), material=SimpleNamespace(models=models))


@pytest.mark.parametrize(
    ("cpus", "gpus", "device", "expected"),
    [
        (1, 0, "cpu", 8),
        (2, 0, "cpu", 4),
        (3, 0, "cpu", 2),
        (16, 0, "cpu", 1),
        (0.5, 0, "cpu", 16),
        (1, 0.25, "cpu", 8),  # there is no accelerator to share
        (1, 0, "cuda", 1),
        (1, 0.25, "cuda", 4),
        (4, 0.25, "cuda", 2),
        (1, 2, "cuda", 1),
    ],
)
def test_resources_say_how_many_workers_go_side_by_side(
    monkeypatch: pytest.MonkeyPatch, cpus: float, gpus: float, device: str, expected: int
) -> None:
    monkeypatch.setattr(choice, "n_cores", lambda: 8)
    monkeypatch.setattr(choice, "local_only", lambda *_: "")
    place: Any = bench(ResourcesSpec(cpus=cpus, gpus=gpus), device)
    nothing: Any = None
    assert worker_count(place, nothing, Options()) == expected
    assert worker_count(place, nothing, Options(workers=3)) == 3
    monkeypatch.setattr(choice, "local_only", lambda *_: "the model net is an object of this process")
    assert worker_count(place, nothing, Options(workers=3)) == 0


def test_workers_take_over_the_process_of_a_trial_and_nothing_else_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    trial: Any = SimpleNamespace(worker=object(), end=lambda: ended.append("ended"))
    nothing: Any = None
    place = bench(ResourcesSpec(), "cpu")
    monkeypatch.setattr(choice, "assignment_for", lambda *_, **__: nothing)
    monkeypatch.setattr(choice, "local_only", lambda *_: "")
    pool = choose_executor(nothing, place, nothing, Options(workers=2), trial)
    assert isinstance(pool, WorkerPool)
    assert (pool._started, ended) == (trial.worker, [])
    monkeypatch.setattr(choice, "local_only", lambda *_: "the model net is an object of this process")
    assert isinstance(choose_executor(nothing, place, nothing, Options(workers=2), trial), InProcess)
    assert ended == ["ended"]
