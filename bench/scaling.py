"""Two workers against one, a cell's cost beside its work, planning a thousand models, and what 64 GPUs would need.

Others who use the machine spoil the first figure: two workers then share what is left. The cores that the workers had
are measured with it, and it is called invalid where two workers had much less than two.
"""

import pickle
import statistics
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from advrisk.core.errors import RunError
from advrisk.parts import REGISTRIES
from advrisk.plan import ModelCard, Plan, Shard, make_plan
from advrisk.run.crew import Unfinished
from advrisk.run.executors import Executor, InProcess, WorkerPool
from advrisk.run.longest import longest_last_first
from advrisk.run.on_ray import OnRay
from advrisk.run.places import assignment_for
from advrisk.run.rows import CellResult
from advrisk.study import study_from
from bench.cells import Shop, shop

WHOLE = 0.9  # of the cores that workers could have had
LONG = {"attack": "pgd", "norm": "linf", "eps": [0.1, 0.2], "steps": 40, "keep": "last"}
SHORT = {"attack": "fgsm", "norm": "linf", "eps": [number / 1000 for number in range(1, 41)]}
FORWARD, BACKWARD = 42, 40  # of a sample under PGD-40, with the clean pass and the judge's
GFLOP = 1.1  # of a ResNet-18 on 32 x 32 pixels, forward; about as much back to the input
TFLOPS = 30  # that a GPU sustains in float32 on such a model
WEIGHTS_MB = 45  # of a ResNet-18
GPUS = 64
MODELS, ARMS, SAMPLES, SHARD = 1_000, 100, 10_000, 64


def main() -> None:
    """Print all four."""
    _two_against_one()
    _beside_the_work()
    _planning()
    _sixty_four_gpus()


def _two_against_one() -> None:
    with shop([LONG], samples=128 * 7, shard=128) as place:
        rounds: dict[str, list[tuple[float, float]]] = {}
        for _ in range(3):
            for name, workers in (("one local worker", 1), ("two local workers", 2)):
                with _pool(place, workers) as executor:
                    rounds.setdefault(name, []).append(_rate(executor, place, workers))
            for name, workers in (("one worker on Ray", 1), ("two workers on Ray", 2)):
                with _on_ray(place, workers) as far:
                    if far is not None:
                        rounds.setdefault(name, []).append(_rate(far, place, workers))
    print("PGD-40 cells of 128 samples of the demo's CNN, in steady state")
    for name, rates in rounds.items():
        per_s, cores = (statistics.median(values) for values in zip(*rates, strict=True))
        print(f"  {name:20} {per_s:6.2f} cells/s on {cores:.2f} cores")
    for one, two in (("one local worker", "two local workers"), ("one worker on Ray", "two workers on Ray")):
        if one in rounds:
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
    for result in executor.run(place.cells):
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


def _beside_the_work() -> None:
    """What passes between two results of one worker that is not the work on a cell."""
    with shop([SHORT], samples=64, shard=16) as place:
        print(f"A cell of 16 samples and one step, {len(place.cells)} of them; the median of what is not its own work")
        _print_beside("this process", _beside(InProcess(place.bench), place))
        with _pool(place, 1) as pool:
            _print_beside("a local worker", _beside(pool, place))
        with _on_ray(place, 1) as far:
            if far is not None:
                _print_beside("a worker on Ray", _beside(far, place))


def _print_beside(name: str, found: Beside) -> None:
    driver = "" if name == "this process" else f"; the driver was busy for {found.driver:.2f} ms"
    print(f"  {name:16} {found.beside:6.2f} ms beside {found.work:.2f} ms of work{driver}", flush=True)


def _beside(executor: Executor, place: Shop) -> Beside:
    times, works, began = [], [], 0.0
    for result in executor.run(place.cells):
        if result is not None:
            times.append(time.perf_counter())
            works.append(result.tables["cells"]["wall_s"][0].as_py())
            began = began or time.process_time()  # starting up is left out
    driver = (time.process_time() - began) / (len(times) - 1)
    beside = [after - before - work for before, after, work in zip(times, times[1:], works[1:], strict=False)]
    return Beside(1000 * statistics.median(beside), 1000 * statistics.median(works), 1000 * driver)


@contextmanager
def _pool(place: Shop, workers: int) -> Iterator[Executor]:
    with WorkerPool(assignment_for(place.bench, place.plan, device="cpu"), workers=workers) as pool:
        yield pool


@contextmanager
def _on_ray(place: Shop, workers: int) -> Iterator[Executor | None]:
    try:
        made = OnRay(
            assignment_for(place.bench, place.plan, device="cpu"),
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


def _planning() -> None:
    """Time and memory of whoever plans, and hands out, a study of a thousand models."""
    study = study_from(_large_study())
    cards = [ModelCard(f"model-{number:04d}", f"{number:032x}", "gradients", 10) for number in range(MODELS)]
    names = [f"sample/{number:06d}" for number in range(SAMPLES)]
    shards = [Shard(f"{start:016x}", tuple(names[start : start + SHARD])) for start in range(0, SAMPLES, SHARD)]
    began = time.perf_counter()
    plan = make_plan(study, REGISTRIES, models=cards, shards=shards, space="")
    plan_s = time.perf_counter() - began
    print(f"{MODELS:,} models, {ARMS} arms and clean, {SAMPLES:,} samples in shards of {SHARD}: {plan.n_cells:,} cells")
    print(f"  planned in {plan_s:.1f} s (which arm meets which model, {len(plan.recipes):,} recipes)")
    began = time.perf_counter()
    some = sum(1 for _, _ in zip(range(200_000), _handed_out(plan), strict=False))
    each_s = (time.perf_counter() - began) / some
    print(
        f"  a cell made, named and handed out: {1e6 * each_s:.1f} us; all of them: {each_s * plan.n_cells / 60:.1f} min"
    )
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    again = make_plan(study, REGISTRIES, models=cards, shards=shards, space="")
    planned, _ = tracemalloc.get_traced_memory()
    for _ in zip(range(20_000), _handed_out(again), strict=False):
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    planned_mb, most_mb = (planned - before) / 1e6, (most - before) / 1e6
    print(f"  memory: the plan {planned_mb:.0f} MB, at most {most_mb:.0f} MB while cells are handed out")


def _sixty_four_gpus() -> None:
    """The arithmetic of that study on a cluster; what is measured here, and what is assumed."""
    with shop([LONG], samples=SHARD, shard=SHARD) as place, _on_ray(place, 1) as far:
        if far is None:
            return
        (result, *_) = [found for found in far.run(place.cells) if found is not None]
        kilobytes = len(pickle.dumps(result)) / 1e3
    with shop([SHORT], samples=SHARD * 4, shard=SHARD) as place, _on_ray(place, 1) as far:
        assert far is not None
        driver_s = _beside(far, place).driver / 1000
    rows = MODELS * ARMS * SAMPLES
    flop = rows * (FORWARD + BACKWARD) * GFLOP * 1e9
    seconds = flop / (GPUS * TFLOPS * 1e12)
    cells = -(-SAMPLES // SHARD) * MODELS * (ARMS + 1)
    print(f"{rows:,} rows of PGD-40, {FORWARD} forward and {BACKWARD} backward passes of {GFLOP} GFLOP each (assumed)")
    print(f"  = {flop:.1e} FLOP; {GPUS} GPUs at {TFLOPS} TFLOP/s each (assumed): {seconds / 3600:.1f} h")
    for shard in (SHARD, 8 * SHARD):
        per_s = cells * SHARD / shard / seconds
        size = kilobytes * shard / SHARD
        print(f"  shards of {shard}: {per_s:.0f} results/s of {size:.0f} kB = {per_s * size / 1e3:.0f} MB/s", end="")
        print(f"; at {1000 * driver_s:.1f} ms each (measured) the driver is busy for {per_s * driver_s:.2f} of a core")
    fifty_gb = 50 * WEIGHTS_MB / 1000
    print(f"  weights in each worker: {MODELS * WEIGHTS_MB / 1000:.0f} GB of all models", end="; ")
    print(f"of 50 models {fifty_gb:.2f} GB, and {4 * fifty_gb:.0f} GB on a GPU that four workers share")


def _handed_out(plan: Plan) -> Iterator[Any]:
    """As a cluster with 256 workers takes cells: the last ones are looked for all the time."""
    return longest_last_first(Unfinished(plan, frozenset()), lambda cell: len(cell.shard.samples), workers=256)


def _large_study() -> Mapping[str, Any]:
    sizes = [number / 1000 for number in range(1, ARMS + 1)]
    return {
        "name": "large",
        "data": {"source": "digits", "evaluate": SAMPLES},
        "models": {"any": {"source": "demo", "name": "plain"}},  # the cards stand in for a thousand
        "arms": [{"attack": "pgd", "norm": "linf", "eps": sizes, "steps": 40}],
    }


if __name__ == "__main__":
    main()
