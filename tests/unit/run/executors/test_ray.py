"""What a worker on Ray refuses, and how the loss of one is told."""

from pathlib import Path

import pytest

from advrisk.run.executors import ray
from advrisk.run.executors.ray import RemoteWorker, _cause, versions


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteWorker:
    monkeypatch.setattr(ray.tempfile, "gettempdir", lambda: str(tmp_path))
    return RemoteWorker()


@pytest.mark.parametrize("name", ["advrisk", "torch", "Python"])
def test_another_version_is_refused_with_its_machine(worker: RemoteWorker, name: str) -> None:
    pytest.importorskip("ray")
    said = worker.begin(None, versions() | {name: "0.0.1"})  # type: ignore[arg-type]
    assert said.startswith(f"{name} is {versions()[name]} on ")
    assert said.endswith("and 0.0.1 here; install the same one there")


def test_a_worker_that_leaves_takes_its_folder_with_it(worker: RemoteWorker, tmp_path: Path) -> None:
    assert len(list(tmp_path.iterdir())) == 1
    worker.leave()
    assert not list(tmp_path.iterdir())


def test_of_all_that_ray_writes_about_a_loss_the_cause_is_told() -> None:
    text = """The actor died unexpectedly before finishing this task.
\tclass_name: RemoteWorker
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker
unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) …"""
    assert _cause(RuntimeError(text)) == "Worker unexpectedly exits with a connection error code 2"
    assert _cause(RuntimeError("The actor is dead because its node has died. Node Id: 7")) == "its node has died"
    assert _cause(RuntimeError("something new")) == "something new"
