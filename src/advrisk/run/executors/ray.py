"""Cells on a Ray cluster: one actor for each worker, one cell at a time for each actor.

Each actor sets up its workbench once, from what lies in the cluster's object store. This process alone writes the
ledger and the inputs that are kept. A worker that is lost, with its machine or without, costs nothing but time: its
cell runs again elsewhere, unless it is lost time and again.

What Ray moves between machines it pickles; nothing is read from outside the cluster (docs/ray.md).
"""

import logging
import math
import platform
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from advrisk.core.children import ONE_THREAD
from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.names import counted
from advrisk.core.version import VERSION
from advrisk.plan import Cell
from advrisk.run.dispatch import MayBegin, Queue, always
from advrisk.run.executors.cluster import Cluster, no_room, wanted_text
from advrisk.run.executors.local import KEEP_MEMORY, START_S, TICK_S, Assignment, Worker
from advrisk.run.executors.payload import (
    Files,
    Payload,
    RemoteResult,
    pack,
    points_for,
    refuse_other_modules,
    run_with_files,
    store_files,
    unpack,
)
from advrisk.run.executors.scratch import Scratch
from advrisk.run.executors.worker import set_up_bench
from advrisk.run.pulse import OnShare, ignore_share
from advrisk.run.rows import CellResult, nothing_to_transfer
from advrisk.run.workbench import Workbench

TRIES = 3  # a cell that loses so many workers gives error rows
START_TRIES = 5  # so many workers that fail to start, one after the other, end a run that has no other
_PAUSE_S = 2.0  # before another one is started, and longer after each: a lost machine may still seem alive
SILENT_TRIES = 2  # a machine that is cut off is silent, too, and Ray may notice that later than the time limit ends
_RESIZE_S = 5.0  # how often the size of the cluster is checked

_LOG = logging.getLogger(__name__)


def versions() -> dict[str, str]:
    """What must be the same everywhere, or rows would depend on who made them."""
    return {"advrisk": VERSION, "torch": str(torch.__version__), "Python": platform.python_version()}


class RemoteWorker:
    """A worker as it lives on the cluster: a workbench in a folder of its own."""

    def __init__(self) -> None:
        self._scratch = Scratch("advrisk-worker-", Path(tempfile.gettempdir()))
        self._bench: Workbench | None = None
        self._assignment: Assignment | None = None

    def begin(self, payload: Payload, expected: dict[str, str]) -> str:
        """Set up the workbench; why it cannot be, or nothing."""
        import ray

        torch.set_num_threads(1)
        # What lies in the object store is shared and read-only, and nothing here writes to it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        for name, version in versions().items():
            if version != expected[name]:
                return f"{name} is {version} on {platform.node()} and {expected[name]} here; install the same one there"
        try:
            self._assignment = unpack(payload, self._scratch.path, ray.get)
            self._bench = set_up_bench(self._assignment)
            refuse_other_modules(payload)
        except AdvriskError as error:
            return f"on {platform.node()}: {error}"
        return ""

    def handle(self, cell: Cell, given: Files) -> RemoteResult:
        """The rows of a cell, and the files that it made."""
        assert self._bench is not None  # begun before any cell is assigned
        assert self._assignment is not None
        return run_with_files(self._assignment.run_cell, cell, given, self._bench)

    def leave(self) -> None:
        """Take away what was written here."""
        self._scratch.remove()


@dataclass(eq=False)
class _Worker(Worker):
    actor: Any
    answer: Any  # awaited: that it has begun, then the result of a cell
    free_since: float = 0.0
    was_idle: bool = False  # before this cell: it may have been lost unnoticed by then


class RayExecutor:
    """Workers on a cluster, as many as it has room for, or at most so many as are asked for.

    As a context manager, it ends what it started, however the context is left.
    """

    def __init__(
        self, assignment: Assignment, bench: Workbench, *, address: str | None, workers: int | None, cores: int
    ) -> None:
        needed = math.ceil(bench.study.resources.cpus * (workers or 1))  # Ray knows whole cores only
        self._cluster = Cluster(address, cpus=max(cores, needed))
        self._assignment, self._bench, self._most = assignment, bench, workers
        self._ray = self._cluster.ray
        self._payload: Payload | None = None
        self._workers: list[_Worker] = []
        self._room, self._had_room, self._sized_at = 0, False, float("-inf")
        self._had_worker = False
        self._n_failed_starts, self._paused_until, self._warned = 0, float("-inf"), False
        self._alone_since = 0.0
        self._lost: Counter[str] = Counter()  # cell -> how many workers it has lost
        self._silent: Counter[str] = Counter()  # cell -> how many were silent for too long

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._dismiss(self._workers)
        finally:
            self._payload = None
            self._cluster.__exit__()

    @property
    def n_workers(self) -> int:
        return self._n_wanted()

    def submit(
        self, cells: Iterable[Cell], *, may_begin: MayBegin = always, on_share: OnShare = ignore_share
    ) -> Iterator[CellResult | None]:
        del on_share  # an actor answers once a cell is done
        self._alone_since = time.monotonic()
        queue, backlog = Queue(cells, may_begin), list[Cell]()
        try:
            while True:
                yield from self._fill(backlog, queue)
                if not may_begin():  # what has not begun is for the next run
                    backlog.clear()
                if not backlog and not self._busy():
                    return
                self._start_workers(len(backlog))
                self._assign(backlog)
                yield from self._collect(queue)
                self._refuse_to_wait_for_ever()
                yield None
        finally:
            self._dismiss(self._busy())  # their results have no taker

    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.cell is not None]

    def _n_wanted(self) -> int:
        """How many workers there should be: the cluster may have grown or shrunk."""
        if time.monotonic() - self._sized_at > _RESIZE_S:
            self._room, self._sized_at = self._cluster.room_for(self._bench.study.resources), time.monotonic()
            self._had_room |= self._room > 0
        return self._most or max(self._room, 1)

    def _fill(self, backlog: list[Cell], queue: Queue) -> Iterator[CellResult]:
        """Take as many cells as workers could begin, and no more; cells that need a lost one fail at once."""
        taken, hopeless = queue.take(self._n_wanted() - len(self._busy()) - len(backlog))
        backlog += taken
        for cell, need in hopeless:
            yield self._assignment.failed(cell, "error", nothing_to_transfer(need))

    def _start_workers(self, n_waiting: int) -> None:
        if time.monotonic() < self._paused_until:
            return
        free = sum(worker.cell is None for worker in self._workers)
        for _ in range(min(n_waiting - free, self._n_wanted() - len(self._workers))):
            self._workers.append(self._started_worker())

    def _started_worker(self) -> _Worker:
        if self._payload is None:
            self._payload = pack(self._assignment, self._bench, self._ray.put)
        resources = self._bench.study.resources
        actor = (
            self._ray.remote(RemoteWorker)
            .options(
                num_cpus=resources.cpus,
                num_gpus=resources.gpus,
                max_restarts=0,
                scheduling_strategy="SPREAD",
                runtime_env={"env_vars": self._environment()},
            )
            .remote()
        )
        return _Worker(actor, actor.begin.remote(self._payload, versions()))

    def _environment(self) -> dict[str, str]:
        folder = self._cluster.folder  # what workers write into a folder of ours goes with it
        return KEEP_MEMORY | ONE_THREAD | ({} if folder is None else {"TMPDIR": str(folder)})

    def _assign(self, backlog: list[Cell]) -> None:
        for worker in self._workers:
            if backlog and worker.ready and worker.cell is None:
                now = time.monotonic()
                worker.cell, worker.began, worker.was_idle = backlog.pop(0), now, now - worker.free_since > 2 * TICK_S
                worker.answer = worker.actor.handle.remote(worker.cell, points_for(worker.cell, self._bench.folder))

    def _collect(self, queue: Queue) -> Iterator[CellResult]:
        """Wait a moment, then receive the answers that have arrived, and stop workers that were silent too long."""
        arrived = self._arrived()
        for worker in list(self._workers):
            has_answered = worker.answer in arrived
            result = self._receive(worker, queue) if has_answered else self._stop_if_silent(worker, queue)
            if result is not None:
                queue.finished(result.cell, lost=worker not in self._workers)
                yield result

    def _arrived(self) -> set[Any]:
        awaited = [worker.answer for worker in self._workers if worker.answer is not None]
        if not awaited:
            time.sleep(TICK_S)
            return set()
        self._ray.wait(awaited, num_returns=1, timeout=TICK_S, fetch_local=False)
        arrived, _ = self._ray.wait(awaited, num_returns=len(awaited), timeout=0, fetch_local=False)
        return set(arrived)

    def _receive(self, worker: _Worker, queue: Queue) -> CellResult | None:
        """The answer of a worker: that it has begun, why it could not, a result, or that it is lost."""
        try:
            answer = self._ray.get(worker.answer)
        except self._ray.exceptions.RayError as error:
            return self._after_loss(worker, _cause(error), queue)
        worker.answer, worker.free_since = None, time.monotonic()
        if isinstance(answer, RemoteResult):
            worker.cell = None
            return store_files(answer, self._bench.folder)
        if answer:
            self._after_refusal(worker, answer)
            return None
        worker.ready, self._n_failed_starts, self._had_worker = True, 0, True
        return None

    def _after_refusal(self, worker: _Worker, reason: str) -> None:
        """A machine that cannot take part ends a run that has no other; else the others continue without it."""
        self._dismiss([worker])
        if not any(other.ready for other in self._workers):
            raise RunError(f"a worker of the Ray cluster could not start: {reason}")
        if not self._warned:
            _LOG.warning("advrisk: a worker of the Ray cluster could not start: %s. Others go on", reason)
        self._warned = True
        self._after_failed_start(reason)

    def _after_loss(self, worker: _Worker, cause: str, queue: Queue) -> CellResult | None:
        """The cell begins again elsewhere; one that has lost many workers fails."""
        cell = worker.cell
        self._dismiss([worker])
        self._sized_at = float("-inf")
        if cell is None:
            self._after_failed_start(cause)
            return None
        self._lost[cell.id] += not worker.was_idle  # or a cell would pay for idle workers of a machine that is gone
        if self._lost[cell.id] >= TRIES:
            message = f"lost {counted(TRIES, 'worker')} of the Ray cluster, the last one: {cause}"
            return self._assignment.failed(cell, "error", message)
        queue.put_back(cell)
        return None

    def _after_failed_start(self, cause: str) -> None:
        """Try again, after a pause; where none ever started, and none is about to, something is wrong with all.

        If some did, machines were lost: others are waited for (`_refuse_to_wait_for_ever`).
        """
        self._n_failed_starts += 1
        self._paused_until = time.monotonic() + _PAUSE_S * self._n_failed_starts
        if self._n_failed_starts >= START_TRIES and not self._had_worker and not self._workers:
            failed = counted(self._n_failed_starts, "worker")
            raise RunError(
                f"{failed} of the Ray cluster could not start, the last one: {cause}. "
                "advrisk of the same version must be installed on all its machines"
            )

    def _stop_if_silent(self, worker: _Worker, queue: Queue) -> CellResult | None:
        """Stop a cell that hangs; a second worker shows whether the cell hangs or the machine was lost."""
        cell = worker.cell
        if cell is None or not worker.hangs(self._bench.study.max_cell_s):
            return None
        self._dismiss([worker])
        self._silent[cell.id] += 1
        if self._silent[cell.id] < SILENT_TRIES:
            queue.put_back(cell)
            return None
        return self._assignment.hung(cell)

    def _refuse_to_wait_for_ever(self) -> None:
        """A cluster that has no room, or none any more, would keep a run waiting silently."""
        if any(worker.ready for worker in self._workers):
            self._alone_since = time.monotonic()
            return
        resources = self._bench.study.resources
        if not self._room and self._had_room and self._cluster.is_ours:
            raise RunError("the Ray cluster of this run is gone. Run the same command again to go on")
        if not self._room and not self._had_room and (self._cluster.is_ours or not self._most):
            raise no_room(resources)
        if time.monotonic() - self._alone_since > START_S:
            raise RunError(
                f"no worker with {wanted_text(resources)} could begin within {START_S:g} s: the cluster is busy with "
                "other work, or has lost its machines (`ray status`). Run the same command again to go on"
            )

    def _dismiss(self, workers: Iterable[_Worker]) -> None:
        """End workers; those that are idle tidy up first."""
        leaving = list(workers)
        idle = [worker.actor.leave.remote() for worker in leaving if worker.ready and worker.cell is None]
        with suppress(Exception):  # whatever became of the cluster, there is nothing left to do for it
            self._ray.wait(idle, num_returns=len(idle), timeout=5) if idle else None
        for worker in leaving:
            with suppress(Exception):
                self._ray.kill(worker.actor)
            self._workers.remove(worker)


def _cause(error: Exception) -> str:
    """Why a worker was lost, in one line of the many that Ray writes."""
    text = " ".join(str(error).split())
    for mark in ("Worker exit detail: ", "error_message: ", "because "):
        _, match, rest = text.partition(mark)
        if match:
            text = rest
            break
    return text.split(". ")[0][:300].rstrip(".")
