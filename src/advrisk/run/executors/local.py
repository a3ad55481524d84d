"""Executors of this machine: this process, or worker processes of one thread each.

Both are handed `run_cell`. Cells that fail come back as error rows; nothing is lost.
"""

import contextlib
import os
import pickle
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Self

from advrisk.core.children import ONE_THREAD, cause_of_death, start_child
from advrisk.core.errors import RunError
from advrisk.engine.threads import one_thread
from advrisk.ledger import Outcome
from advrisk.parts.data import Dataset
from advrisk.plan import Cell, ConfiguredDetector
from advrisk.run.dispatch import MayBegin, Queue, always
from advrisk.run.pulse import OnShare, ignore_share
from advrisk.run.rows import CellResult, failed_result, nothing_to_transfer
from advrisk.run.workbench import Workbench
from advrisk.study import StudySpec

RunCell = Callable[[Cell, Workbench], CellResult]

TICK_S = 0.5
READY = "ready"  # the message of a worker that has loaded its material
# A cell that checks the clock between passes ends by itself; one that hangs inside a pass does not.
GRACE_S = 10.0
START_S = 600.0  # how long a worker may take to load its material


@dataclass(frozen=True)
class InProcess:
    """Cells one after another in this process, on one thread, so that rows equal those of the workers."""

    run_cell: RunCell
    bench: Workbench
    n_workers: int = field(default=1, init=False)

    def submit(
        self, cells: Iterable[Cell], *, may_begin: MayBegin = always, on_share: OnShare = ignore_share
    ) -> Iterator[CellResult | None]:
        faults: list[Exception] = []

        def report(cell: str, n_done: float) -> None:
            try:
                on_share(cell, n_done)
            except Exception as error:  # of who listens: within a cell it would pass for an error of its attack
                faults.append(error)

        self.bench.on_share = report
        with one_thread():
            for cell in cells:
                if not may_begin():
                    return
                result = self.run_cell(cell, self.bench)
                if faults:
                    raise faults[0]
                yield result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


@dataclass(frozen=True)
class Assignment:
    """What a worker process receives when it starts."""

    run_cell: RunCell
    study: StudySpec
    folder: Path
    run: str
    device: str
    data: Dataset  # the samples of the cells, so that no worker reads the source again
    digests: Mapping[str, str]  # model -> digest, as planned
    python_path: tuple[str, ...]
    modules: tuple[str, ...]  # where the study's arms are defined: importing them registers the arms
    code: str = ""  # a folder with modules that were sent, which come before all others of their names
    detectors: tuple[ConfiguredDetector, ...] = ()  # that arms may try to get past; what they learned is in the folder

    def failed(self, cell: Cell, outcome: Outcome, message: str) -> CellResult:
        """The rows of a cell that gave no result."""
        criterion = self.study.criterion
        return failed_result(cell, run=self.run, criterion=criterion, outcome=outcome, message=message)

    @property
    def start_s(self) -> float:
        """How long a worker may take to load its material."""
        return max(START_S, len(self.study.models) * self.study.max_load_s)

    def hung(self, cell: Cell) -> CellResult:
        return self.failed(cell, "timeout", f"hung for more than {self.study.max_cell_s:g} s and was stopped")


@dataclass(frozen=True)
class CellShare:
    """What a worker process sends while it runs a cell: how many of its samples are done."""

    cell: str
    n_done: float


@dataclass(frozen=True)
class TrialLoad:
    """What a worker process receives before its assignment, if it is to load models on trial.

    It answers with a tuple of one name for each model that it begins to load, then `READY`, or the error of one.
    """

    study: StudySpec
    models: tuple[str, ...]
    device: str
    data: Dataset  # one sample: what a model is checked against
    python_path: tuple[str, ...]
    modules: tuple[str, ...]  # where the sources of models are defined


# glibc would hand the memory of every large tensor back to the system and fetch it anew; ignored elsewhere.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)}


@dataclass(eq=False, kw_only=True)
class Worker:
    """A worker that runs one cell at a time, as seen from here."""

    cell: Cell | None = None
    began: float = 0.0
    ready: bool = False

    def hangs(self, limit_s: float | None) -> bool:
        """Whether it has been at its cell for longer than one that checks the clock could be."""
        at_work = self.ready and self.cell is not None
        return at_work and limit_s is not None and time.monotonic() - self.began > limit_s + GRACE_S


@dataclass(eq=False)
class _Worker(Worker):
    process: subprocess.Popen[bytes]
    connection: Connection


class WorkerPool:
    """Worker processes of one thread each. One that dies costs the cell it was at, and is replaced.

    They end with `submit`, but those of a context manager wait for the next one.
    """

    def __init__(self, assignment: Assignment, *, workers: int, started: _Worker | None = None) -> None:
        self._assignment = assignment
        self._started = started  # it is taken over
        self._n_workers = workers
        self._workers: list[_Worker] = []
        self._kept = False

    def __enter__(self) -> Self:
        self._kept = True
        return self

    def __exit__(self, *_: object) -> None:
        self._kept = False
        self._stop_all()

    @property
    def n_workers(self) -> int:
        return self._n_workers

    def submit(
        self, cells: Iterable[Cell], *, may_begin: MayBegin = always, on_share: OnShare = ignore_share
    ) -> Iterator[CellResult | None]:
        queue = Queue(cells, may_begin)
        workers = self._workers
        try:
            while True:
                yield from self._assign(queue, workers)
                busy = [worker for worker in workers if worker.cell]
                if not busy:
                    return
                readable = wait([worker.connection for worker in busy], timeout=TICK_S)
                for worker in busy:
                    result = self._poll(worker, on_share, readable=worker.connection in readable)
                    if result is not None:
                        worker.cell = None
                        queue.finished(result.cell, lost=worker.connection.closed)
                        yield result
                yield None
        finally:
            if not self._kept:
                self._stop_all()

    def _stop_all(self) -> None:
        while self._workers:
            stop_worker(self._workers.pop())

    def _assign(self, queue: Queue, workers: list[_Worker]) -> Iterator[CellResult]:
        """Give a cell to every worker that is idle or can still start; cells that need a lost one fail at once."""
        idle = [worker for worker in workers if worker.cell is None and _is_alive(worker)]
        for worker in [worker for worker in workers if worker.cell is None and worker not in idle]:
            stop_worker(worker)
            workers.remove(worker)
        room = self._n_workers - (len(workers) - len(idle))
        given, hopeless = queue.take(room)
        for cell, need in hopeless:
            yield self._assignment.failed(cell, "error", nothing_to_transfer(need))
        started = [self._spawn() for _ in given[len(idle) :]]  # all at once: each takes seconds to import torch
        workers += started
        for worker, cell in zip([*idle, *map(self._brief, started)], given, strict=False):
            _send(worker, cell)

    def _poll(self, worker: _Worker, on_share: OnShare, *, readable: bool) -> CellResult | None:
        """A result, if the worker has one, has died, or has been silent for too long."""
        if readable:
            try:
                message = worker.connection.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                return self._lost(worker, f"the worker process died ({cause_of_death(worker.process)})")
            if isinstance(message, RunError):
                raise message
            if message == READY:
                worker.ready, worker.began = True, time.monotonic()
            if isinstance(message, CellShare):
                on_share(message.cell, message.n_done)
            return message if isinstance(message, CellResult) else None
        if worker.cell is not None and worker.hangs(self._assignment.study.max_cell_s):
            stop_worker(worker)
            return self._assignment.hung(worker.cell)
        if not worker.ready and time.monotonic() - worker.began > self._assignment.start_s:
            stop_worker(worker)
            raise RunError(
                f"a worker process could not start: it was not ready within {self._assignment.start_s:g} s. Does a "
                "model hang while it is loaded, or at its first pass?"
            )
        return None

    def _lost(self, worker: _Worker, message: str) -> CellResult:
        assert worker.cell is not None  # only busy workers are polled
        stop_worker(worker)
        if not worker.ready:  # not the cell's fault, and the next worker would fare no better
            raise RunError(f"a worker process could not start: {message}")
        return self._assignment.failed(worker.cell, "error", message)

    def _spawn(self) -> _Worker:
        started, self._started = self._started, None
        return started if started is not None and _is_alive(started) else spawn_worker()

    def _brief(self, worker: _Worker) -> _Worker:
        try:
            worker.connection.send(self._assignment)
        except OSError:
            raise RunError(f"a worker process could not start ({cause_of_death(worker.process)})") from None
        return worker


def spawn_worker() -> _Worker:
    """Start a worker process, which waits for what it is to load."""
    return _Worker(*start_child("advrisk.run.executors.worker", KEEP_MEMORY | os.environ | ONE_THREAD))


def _send(worker: _Worker, cell: Cell) -> None:
    worker.cell, worker.began = cell, time.monotonic()
    with contextlib.suppress(OSError):  # it may have died: polling it shows that
        worker.connection.send(cell)


def _is_alive(worker: _Worker) -> bool:
    return not worker.connection.closed and worker.process.poll() is None


def stop_worker(worker: _Worker) -> None:
    """Kill a worker, whatever it is at; one that has ended already is left as it is."""
    worker.connection.close()
    worker.process.kill()
    worker.process.wait()
