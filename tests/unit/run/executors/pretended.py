"""A Ray cluster that is none: its workers live in this process, and hours pass on its clock in no time.

What a worker does is said by the test: how long it takes to begin, and what becomes of each cell.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.plan import Cell, Shard
from advrisk.run.cell import run_cell
from advrisk.run.executors import local
from advrisk.run.executors import ray as ray_executor
from advrisk.run.executors.local import Assignment
from advrisk.run.executors.payload import RemoteResult
from advrisk.run.executors.ray import RayExecutor
from advrisk.run.rows import CellResult
from advrisk.study import CLEAN, study_from

NEVER = float("inf")
STUDY = {
    "name": "pretended",
    "data": {"source": "digits", "evaluate": 4},
    "models": {"net": {"source": "demo", "name": "plain"}},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
}


def cell(name: str, *needs: Cell) -> Cell:
    return Cell(name, "r", "net", CLEAN, Shard("s", ("a",)), 0, needs)


class LostError(Exception):
    """What Ray raises when a worker is gone."""


@dataclass(frozen=True)
class Does:
    """What becomes of a call: an answer after some seconds, or an error."""

    after_s: float = 1.0
    said: Any = None
    lost: str = ""


@dataclass(eq=False)
class _Answer:
    due: float
    does: Does


@dataclass(eq=False)
class Far:
    """A worker of the cluster, the n-th that was hired."""

    number: int
    hired_at: float
    killed: bool = False
    was_given: list[str] = field(default_factory=list)


@dataclass
class Ray:
    """As much of Ray as `RayExecutor` asks for, and of the cluster: how many workers it has room for."""

    room: int = 2
    is_ours: bool = False
    folder: Path | None = None
    begins: Callable[[Far], Does] = lambda _: Does(said="")  # why it cannot begin, or nothing
    carries_out: Callable[[Far, Cell], Does] = lambda _, cell: Does()
    now: float = 1000.0
    hired: list[Far] = field(default_factory=list)
    given: list[tuple[float, str]] = field(default_factory=list)  # when which cell was begun
    exceptions: Any = field(default_factory=lambda: SimpleNamespace(RayError=LostError))

    @property
    def ray(self) -> "Ray":
        return self

    def __enter__(self) -> "Ray":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was begun."""

    def room_for(self, _: Any) -> int:
        return self.room

    def remote(self, _: type) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._hire))

    def _hire(self) -> Any:
        far = Far(len(self.hired) + 1, self.now)
        self.hired.append(far)
        return SimpleNamespace(
            far=far,
            begin=SimpleNamespace(remote=lambda *_: self._answer(self.begins(far))),
            handle=SimpleNamespace(remote=lambda cell, _: self._given(far, cell)),
            leave=SimpleNamespace(remote=lambda: self._answer(Does(0.0))),
        )

    def _given(self, far: Far, cell: Cell) -> _Answer:
        far.was_given.append(cell.id)
        self.given.append((self.now, cell.id))
        does = self.carries_out(far, cell)
        result = CellResult(cell.id, {}, n_rows=1, n_errors=0, n_passes=1)
        return self._answer(does if does.lost else Does(does.after_s, RemoteResult(result, {})))

    def _answer(self, does: Does) -> _Answer:
        return _Answer(self.now + does.after_s, does)

    def wait(self, answers: Sequence[_Answer], *, num_returns: int, timeout: float, **_: Any) -> tuple[Any, Any]:
        if not any(answer.due <= self.now for answer in answers):
            self.now = min(self.now + timeout, *(answer.due for answer in answers))
        return [answer for answer in answers if answer.due <= self.now][:num_returns], ()

    def get(self, answer: _Answer) -> Any:
        if answer.does.lost:
            raise LostError(answer.does.lost)
        return answer.does.said

    def kill(self, actor: Any) -> None:
        actor.far.killed = True

    def put(self, content: Any) -> Any:
        return content

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def pretended(
    ray: Ray, patch: pytest.MonkeyPatch, *, workers: int | None = None, **study: Any
) -> Iterator[RayExecutor]:
    """An executor on that cluster."""
    clock = SimpleNamespace(monotonic=lambda: ray.now, sleep=ray.sleep)
    for module in (ray_executor, local):
        patch.setattr(module, "time", clock)
    patch.setattr(ray_executor, "Cluster", lambda *_, **__: ray)
    patch.setattr(ray_executor, "pack", lambda *_: None)
    patch.setattr(ray_executor, "points_for", lambda *_: {})
    patch.setattr(ray_executor, "store_files", lambda remote, _: remote.result)
    made: Any = study_from(STUDY | study)
    nothing: Any = None
    assignment = Assignment(run_cell, made, Path(), "run", "cpu", nothing, {}, (), ())
    bench: Any = SimpleNamespace(study=made, folder=Path())
    with RayExecutor(assignment, bench, address=None, workers=workers, cores=2) as executor:
        yield executor
