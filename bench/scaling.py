"""Two workers against one, a cell's cost beside its work, planning a thousand models, and what 64 GPUs would need.

Others who use the machine spoil the first figure: two workers then share what is left. The cores that the workers had
are measured with it, and it is called invalid where two workers had much less than two.
"""

import pickle
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from advrisk.core.errors import RunError
from advrisk.core.version import VERSION
from advrisk.ledger import Ledger, table_from
from advrisk.parts import REGISTRIES
from advrisk.plan import Cell, ModelCard, Plan, Shard, make_plan, outline_plan
from advrisk.run.cell import run_cell
from advrisk.run.dispatch import Executor
from advrisk.run.executors.choice import assignment_for
from advrisk.run.executors.local import InProcess, WorkerPool
from advrisk.run.executors.ray import RayExecutor
from advrisk.run.finished import NAME_BYTES, CellNames, Unfinished
from advrisk.run.rows import CellResult
from advrisk.run.scheduling import expected_work, longest_last_first
from advrisk.study import study_from
from bench.cells import Shop, shop

WHOLE = 0.9  # of the cores that workers could have had
LONG = {"attack": "pgd", "norm": "linf", "eps": [0.1, 0.2], "steps": 40, "keep": "last"}
FORWARD, BACKWARD = 42, 40  # of a sample under PGD-40, with the clean pass and the judge's
GFLOP = 1.1  # of a ResNet-18 on 32 x 32 pixels, forward; about as much back to the input
TFLOPS = 30  # that a GPU sustains in float32 on such a model
WEIGHTS_MB = 45  # of a ResNet-18
GPUS = 64
SHARD = 64
SEGMENTS = 20
READ = """
import resource, sys, time
from advrisk.ledger import Ledger
from advrisk.run.finished import finished_cells
began = time.process_time()
found = finished_cells(Ledger.open(sys.argv[1]))
print(time.process_time() - began, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(found))
"""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    models: int = 1_000
    arms: int = 100
    samples: int = 10_000
    traced: int = 150_000  # cells: more than there are pairs of model and arm, so that all of these were met
    resumed: tuple[int, int] = (100_000, 400_000)  # cells of two ledgers
    shards: int = 7  # two cells each, where two workers are beside one
    shard: int = 128
    rounds: int = 3
    short: int = 40  # arms of one step
    workers: int = 2
    on_ray: int = 2  # workers, beside those of the last figure


TINY = Size(
    models=3, arms=2, samples=300, traced=5, resumed=(20, 40), shards=2, shard=4, rounds=1, short=2, workers=1, on_ray=0
)


def main(*, tiny: bool = False) -> None:
    """Print all four; a tiny run asks Ray for the last one alone, as it takes long to start."""
    size = TINY if tiny else Size()
    _two_against_one(size)
    _beside_the_work(size)
    _planning(size)
    _sixty_four_gpus(size)


def _two_against_one(size: Size) -> None:
    n = size.shard
    with shop([LONG], samples=n * size.shards, shard=n) as place:
        rounds: dict[str, list[tuple[float, float]]] = {}
        for _ in range(size.rounds):
            for name, workers in (("one local worker", 1), ("two local workers", 2))[: size.workers]:
                with _pool(place, workers) as executor:
                    rounds.setdefault(name, []).append(_rate(executor, place, workers))
            for name, workers in (("one worker on Ray", 1), ("two workers on Ray", 2))[: size.on_ray]:
                with _on_ray(place, workers) as far:
                    if far is not None:
                        rounds.setdefault(name, []).append(_rate(far, place, workers))
    print(f"PGD-40 cells of {n} samples of the demo's CNN, in steady state")
    for name, rates in rounds.items():
        per_s, cores = (statistics.median(values) for values in zip(*rates, strict=True))
        print(f"  {name:20} {per_s:6.2f} cells/s on {cores:.2f} cores")
    for one, two in (("one local worker", "two local workers"), ("one worker on Ray", "two workers on Ray")):
        if two in rounds:
            _print_ratio(two, rounds[one], rounds[two])


def _print_ratio(name: str, one: list[tuple[float, float]], two: list[tuple[float, float]]) -> None:
    speed = statistics.median(b[0] / a[0] for a, b in zip(one, two, strict=True))
    cores = statistics.median(b[1] for b in two)
    of_core = statistics.median((b[0] / b[1]) / (a[0] / a[1]) for a, b in zip(one, two, strict=True))
    verdict = "" if cores >= 2 * WHOLE else "  NOT VALID: somebody else was using the cores"
    print(f"  {name} / one: {speed:.2f}; for each second of a core, {of_core:.2f}{verdict}", flush=True)


def _rate(executor: Executor, place: Shop, workers: int) -> tuple[float, float]:
    """Cells per second, and cores in use, between the first result of every worker and the last of them all."""
    arrived: list[tuple[float, CellResult]] = []
    for result in executor.submit(place.cells):
        if result is not None:
            assert not result.n_errors, result.messages
            arrived.append((time.perf_counter(), result))
    steady = arrived[workers : len(arrived) - workers + 1]
    elapsed_s = steady[-1][0] - arrived[workers - 1][0]
    busy_s = sum(result.tables["cells"]["process_s"][0].as_py() for _, result in steady)
    return len(steady) / elapsed_s, busy_s / elapsed_s


@dataclass(frozen=True)
class Beside:
    """Medians over cells, in milliseconds; `driver` is processor time of the process that hands out and collects."""

    beside: float
    work: float
    driver: float


def _beside_the_work(size: Size) -> None:
    """What passes between two results of one worker that is not the work on a cell."""
    with shop([_short(size)], samples=64, shard=16) as place:
        print(f"A cell of 16 samples and one step, {len(place.cells)} of them; the median of what is not its own work")
        _print_beside("this process", _beside(InProcess(run_cell, place.bench), place.cells))
        if size.workers > 1:
            with _pool(place, 1) as pool:
                _print_beside("a local worker", _beside(pool, place.cells))
        with _on_ray(place, 1) if size.on_ray else nullcontext() as far:
            if far is not None:
                _print_beside("a worker on Ray", _beside(far, place.cells))


def _print_beside(name: str, found: Beside) -> None:
    driver = "" if name == "this process" else f"; the driver was busy for {found.driver:.2f} ms"
    print(f"  {name:16} {found.beside:6.2f} ms beside {found.work:.2f} ms of work{driver}", flush=True)


def _beside(executor: Executor, cells: Sequence[Cell]) -> Beside:
    times, works, began = [], [], 0.0
    for result in executor.submit(cells):
        if result is not None:
            times.append(time.perf_counter())
            works.append(result.tables["cells"]["wall_s"][0].as_py())
            began = began or time.process_time()  # starting up is left out
    driver = (time.process_time() - began) / (len(times) - 1)
    beside = [after - before - work for before, after, work in zip(times, times[1:], works[1:], strict=False)]
    return Beside(1000 * statistics.median(beside), 1000 * statistics.median(works), 1000 * driver)


@contextmanager
def _pool(place: Shop, workers: int) -> Iterator[Executor]:
    with WorkerPool(assignment_for(run_cell, place.bench, place.plan, device="cpu"), workers=workers) as pool:
        yield pool


@contextmanager
def _on_ray(place: Shop, workers: int) -> Iterator[Executor | None]:
    try:
        made = RayExecutor(
            assignment_for(run_cell, place.bench, place.plan, device="cpu"),
            place.bench,
            address="local",
            workers=workers,
            cores=2,
        )
    except RunError as error:
        print(f"  {error}")
        yield None
        return
    with made as executor:
        yield executor


def _planning(size: Size) -> None:
    """Time and memory of whoever plans, and hands out, a study of a thousand models; and of whoever goes on with it."""
    study = study_from(_large_study(size))
    cards = [ModelCard(f"model-{number:04d}", f"{number:032x}", "gradients", 10) for number in range(size.models)]
    names = [f"sample/{number:06d}" for number in range(size.samples)]
    shards = [Shard(f"{start:016x}", tuple(names[start : start + SHARD])) for start in range(0, size.samples, SHARD)]
    began = time.process_time()  # of this process, whoever else uses the machine
    outline = outline_plan(study, REGISTRIES, models=cards)
    plan = make_plan(outline, study, REGISTRIES, models=cards, shards=shards, space="")
    plan_s = time.process_time() - began
    print(
        f"{size.models:,} models, {size.arms} arms and clean, {size.samples:,} samples in shards of {SHARD}", end=": "
    )
    print(f"{plan.n_cells:,} cells")
    print(f"  planned in {plan_s:.1f} s (which arm meets which model, {len(plan.recipes):,} recipes)")
    each_s = _seconds_each(_handed_out(plan, frozenset()))
    print(
        f"  a cell made, named and handed out: {1e6 * each_s:.1f} us; all of them: {each_s * plan.n_cells / 60:.1f} min"
    )
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    outline = outline_plan(study, REGISTRIES, models=cards)
    again = make_plan(outline, study, REGISTRIES, models=cards, shards=shards, space="")
    planned, _ = tracemalloc.get_traced_memory()
    handed_out, most = _handed_out(again, frozenset()), []
    for n in (size.traced, size.traced):
        for _ in zip(range(n), handed_out, strict=False):
            pass
        most.append((tracemalloc.get_traced_memory()[1] - before) / 1e6)
    tracemalloc.stop()
    print(f"  memory: the plan {(planned - before) / 1e6:.0f} MB, at most {most[0]:.0f} MB", end="")
    print(f" while {size.traced:,} cells are handed out, {most[1]:.0f} MB while {2 * size.traced:,} are")
    _going_on(plan, size)


def _going_on(plan: Plan, size: Size) -> None:
    """What it takes to go on with a run of which all cells are finished, by the cell."""
    few, many = size.resumed
    with tempfile.TemporaryDirectory(prefix="advrisk-bench-") as name:
        measured = [_reading(Path(name) / str(n), plan, n) for n in (few, many)]
    read_s, peak = ((after - before) / (many - few) for before, after in zip(*measured, strict=True))
    held = CellNames(pa.chunked_array([pa.array([cell.id for _, cell in zip(range(few), plan.cells(), strict=False)])]))
    skip_s = _seconds_each(Unfinished(plan, held)._is_finished(cell) for cell in plan.cells())
    n = plan.n_cells
    print(
        f"  going on once all are finished: reading the ledger takes {peak:.0f} bytes and {1e6 * read_s:.1f} us a cell",
        end="",
    )
    print(f" (between {few:,} and {many:,} of them), {n * peak / 1e9:.1f} GB and {n * read_s / 60:.1f} min of all")
    print(f"  their names are held in {NAME_BYTES} bytes each, {n * NAME_BYTES / 1e6:.0f} MB;", end="")
    print(f" each is made and looked up twice, {1e6 * skip_s:.1f} us, {2 * skip_s * n / 60:.1f} min")


def _seconds_each(some: Iterable[object]) -> float:
    began = time.process_time()
    n = sum(1 for _, _ in zip(range(200_000), some, strict=False))
    return (time.process_time() - began) / n


def _reading(folder: Path, plan: Plan, n: int) -> tuple[float, float]:
    """Seconds and bytes at most that a process takes to learn which cells are finished, of a ledger with so many."""
    ledger = Ledger.open(folder, create=True)
    pairs = list(plan.recipes.items())
    arms = {"model": [model for (model, _), _ in pairs], "arm": [arm for (_, arm), _ in pairs]}
    arms |= {"recipe": [recipe for _, recipe in pairs], "origin": ["study"] * len(pairs), "repeats": [1] * len(pairs)}
    ledger.append({"arms": table_from("arms", arms)})
    cells = plan.cells()
    for _ in range(SEGMENTS):
        some = [cell for _, cell in zip(range(n // SEGMENTS), cells, strict=False)]
        ledger.append(
            {"outcomes": table_from("outcomes", {"cell": [some[0].id], "outcome": ["success"]}), "cells": _rows(some)}
        )
    asked = subprocess.run([sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=True)
    seconds, peak, found = (float(word) for word in asked.stdout.split())
    assert found == n
    return seconds, peak


def _rows(cells: Sequence[Cell]) -> pa.Table:
    n = len(cells)
    names = {"cell": [cell.id for cell in cells], "recipe": [cell.recipe for cell in cells]}
    names |= {"model": [cell.model for cell in cells], "arm": [cell.arm.id for cell in cells]}
    names |= {"shard": [cell.shard.id for cell in cells], "run": ["0" * 12] * n, "version": [VERSION] * n}
    counts = {"repeat": [0] * n, "n_samples": [SHARD] * n, "n_errors": [0] * n, "flags": [[]] * n}
    return table_from("cells", names | counts | {"wall_s": [1.0] * n, "process_s": [1.0] * n})


def _sixty_four_gpus(size: Size) -> None:
    """The arithmetic of that study on a cluster; what is measured here, and what is assumed."""
    with shop([LONG, _short(size)], samples=SHARD * 4, shard=SHARD) as place, _on_ray(place, 1) as far:
        if far is None:
            return
        (long, *_), short = ([cell for cell in place.cells if cell.arm.family == name] for name in ("pgd", "fgsm"))
        (result,) = [found for found in far.submit([long]) if found is not None]
        kilobytes = len(pickle.dumps(result)) / 1e3
        driver_s = _beside(far, short).driver / 1000
    rows = size.models * size.arms * size.samples
    flop = rows * (FORWARD + BACKWARD) * GFLOP * 1e9
    seconds = flop / (GPUS * TFLOPS * 1e12)
    cells = -(-size.samples // SHARD) * size.models * (size.arms + 1)
    print(f"{rows:,} rows of PGD-40, {FORWARD} forward and {BACKWARD} backward passes of {GFLOP} GFLOP each (assumed)")
    print(f"  = {flop:.1e} FLOP; {GPUS} GPUs at {TFLOPS} TFLOP/s each (assumed): {seconds / 3600:.1f} h")
    for shard in (SHARD, 8 * SHARD):
        per_s = cells * SHARD / shard / seconds
        kb = kilobytes * shard / SHARD
        print(f"  shards of {shard}: {per_s:.0f} results/s of {kb:.0f} kB = {per_s * kb / 1e3:.0f} MB/s", end="")
        print(f"; at {1000 * driver_s:.1f} ms each (measured) the driver is busy for {per_s * driver_s:.2f} of a core")
    fifty_gb = 50 * WEIGHTS_MB / 1000
    print(f"  weights in each worker: {size.models * WEIGHTS_MB / 1000:.0f} GB of all models", end="; ")
    print(f"of 50 models {fifty_gb:.2f} GB, and {4 * fifty_gb:.0f} GB on a GPU that four workers share")


def _handed_out(plan: Plan, finished: Set[str]) -> Iterator[Cell]:
    """As a cluster with 256 workers takes cells: the last ones are looked for all the time."""

    def nobody(*_: object) -> None:
        """No arm knows a detector."""

    model = SimpleNamespace(random=False, n_classes=10, capability="gradients")
    models = {name: model for name, _ in plan.assessed}
    bench: Any = SimpleNamespace(registries=REGISTRIES, material=SimpleNamespace(models=models), suspicion=nobody)
    return longest_last_first(Unfinished(plan, finished), expected_work(bench), workers=4 * GPUS)


def _short(size: Size) -> dict[str, Any]:
    return {"attack": "fgsm", "norm": "linf", "eps": [number / 1000 for number in range(1, size.short + 1)]}


def _large_study(size: Size) -> Mapping[str, Any]:
    sizes = [number / 1000 for number in range(1, size.arms + 1)]
    return {
        "name": "large",
        "data": {"source": "digits", "evaluate": size.samples},
        "models": {"any": {"source": "demo", "name": "plain"}},  # the cards stand in for a thousand
        "arms": [{"attack": "pgd", "norm": "linf", "eps": sizes, "steps": 40}],
    }


if __name__ == "__main__":
    main()
