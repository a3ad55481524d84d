"""Gradients per second of the runner's two workers, beside a plain loop of `.backward()` on two threads.

Taking turns does not help here if others use the machine: two threads that wait for each other lose far more by a busy
core than two workers do. So the cores that each had are measured, too, and a ratio of unequal shares is called invalid.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.run.cell import run_cell
from advrisk.run.executors.local import Assignment, WorkerPool
from advrisk.run.rows import CellResult
from bench.cells import DIGITS, SMALL_CNN, Shop, n_passes, shop
from bench.nets import LENET, RESNET
from bench.timing import median_ratio

CELLS = 2  # per worker and round
WHOLE = 1.8  # of two cores: less means that somebody else was using them
Rate = tuple[float, float]  # gradients per second, and cores that were used


def main(*, tiny: bool = False) -> None:
    """Print the ratio for the demo's tiny CNN, for LeNet-5 and for ResNet-20, in steady state."""
    if not tiny:
        _compare("the demo's CNN", DIGITS, SMALL_CNN, shard=128, steps=40, rounds=5)
        _compare("LeNet-5", DIGITS, LENET, shard=128, steps=40, rounds=3)
    with tempfile.TemporaryDirectory(prefix="advrisk-bench-") as folder:
        path = Path(folder) / "noise.npz"
        x = np.random.default_rng(0).integers(0, 256, (128, 32, 32, 3), np.uint8)
        np.savez(path, x=x, y=np.arange(128) % 10)
        data = {"source": "npz", "path": str(path)}
        size = (
            {"shard": 2, "steps": 1, "rounds": 1, "naive_s": 0.01, "workers": 1}
            if tiny
            else {"shard": 128, "steps": 20, "rounds": 3}
        )
        _compare("ResNet-20", data, RESNET, **size)


def _compare(
    name: str,
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    *,
    shard: int,
    steps: int,
    rounds: int,
    naive_s: float = 1.5,
    workers: int = 2,
) -> None:
    arm = {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": steps, "keep": "last"}
    with shop([arm], samples=shard, shard=shard, data=data, model=model) as place:
        module = place.module(frozen=False)
        x, y = place.samples(place.cells[0])
        rounds_of: dict[str, list[Rate]] = {"ours": [], "two": [], "one": []}
        results = _results(place, workers)
        try:
            for _ in range(rounds):
                rounds_of["ours"].append(_of_workers(results, workers))
                rounds_of["two"].append(_of_naive_loop(module, x, y, threads=2, at_least_s=naive_s))
                rounds_of["one"].append(_of_naive_loop(module, x, y, threads=1, at_least_s=naive_s))
        finally:
            results.close()
    print(f"{name}, PGD-{steps} cells of {shard} samples in {workers} workers")
    _print_rates(**rounds_of)


def _print_rates(ours: list[Rate], two: list[Rate], one: list[Rate]) -> None:
    for words, rates in (("workers", ours), ("naive loop, 2 threads", two), ("naive loop, 1 thread", one)):
        per_s, cores = np.median(rates, axis=0)
        print(f"  {words:22} {per_s:8.0f} gradients/s on {cores:.2f} cores: {per_s / cores:8.0f} per second of a core")
    speeds = [[per_s for per_s, _ in rates] for rates in (ours, two, one)]
    print(f"  ratio to the loop on two threads {median_ratio(speeds[0], speeds[1]):.2f}", end="; ")
    print(f"to twice that on one, a bound for any sharing, {median_ratio(speeds[0], speeds[2]) / 2:.2f}", flush=True)
    if min(np.median([cores for _, cores in rates]) for rates in (ours, two)) < WHOLE:
        print("  NOT VALID: somebody else was using the cores", flush=True)


def _results(place: Shop, workers: int) -> Iterator[CellResult]:
    """What the workers bring, cell after cell; while nobody asks, they finish the cells they have and wait."""
    bench = place.bench
    assignment = Assignment(
        run_cell=run_cell,
        study=bench.study,
        folder=bench.folder,
        run=bench.run,
        device="cpu",
        data=bench.material.data,
        digests={"model": place.model.digest},
        python_path=tuple(sys.path),
        modules=(),
    )
    pool = WorkerPool(assignment, workers=workers).submit(itertools.cycle(place.cells))
    try:
        yield from (result for result in pool if result is not None)
    finally:
        pool.close()


def _of_workers(results: Iterator[CellResult], workers: int) -> Rate:
    """Of cells that begin after the workers have handed in what lay ready, so that no start-up counts."""
    for _ in range(workers):
        next(results)
    began = time.perf_counter()
    done = [next(results) for _ in range(CELLS * workers)]
    elapsed_s = time.perf_counter() - began
    assert not any(result.n_errors for result in done), done[0].messages
    time.sleep(1.5 * elapsed_s / CELLS)  # the workers finish the cells they have
    busy_s = sum(result.tables["cells"]["process_s"][0].as_py() for result in done)
    return sum(n_passes(result)[1] for result in done) / elapsed_s, busy_s / elapsed_s


def _of_naive_loop(module: nn.Module, x: Tensor, y: Tensor, *, threads: int, at_least_s: float) -> Rate:
    torch.set_num_threads(threads)
    n, elapsed_s, began, began_process = 0, 0.0, time.perf_counter(), time.process_time()
    while not n or elapsed_s < at_least_s:
        inputs = x.clone().requires_grad_(True)
        F.cross_entropy(module(inputs), y).backward()
        n += len(x)
        elapsed_s = time.perf_counter() - began
    busy_s = time.process_time() - began_process
    torch.set_num_threads(1)
    return n / elapsed_s, busy_s / elapsed_s


if __name__ == "__main__":
    main()
