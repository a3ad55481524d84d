"""Gradients per second of the runner's two workers, beside a plain loop of `.backward()` on two threads."""

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

from advrisk.run.executors import Assignment, WorkerPool
from advrisk.run.rows import CellResult
from bench.cells import DIGITS, SMALL_CNN, Shop, n_passes, shop
from bench.timing import median_ratio

WORKERS = THREADS = 2
CELLS = 3  # per worker and round
NAIVE_S = 2.0
RESNET = {"source": "torch", "factory": "bench.resnet:resnet20"}


def main() -> None:
    """Print the ratio for the small CNN and for ResNet-20, in steady state."""
    _compare("small CNN", DIGITS, SMALL_CNN, shard=128, steps=40, rounds=5)
    with tempfile.TemporaryDirectory(prefix="advrisk-bench-") as folder:
        path = Path(folder) / "noise.npz"
        x = np.random.default_rng(0).integers(0, 256, (64, 32, 32, 3), np.uint8)
        np.savez(path, x=x, y=np.arange(64) % 10)
        _compare("ResNet-20", {"source": "npz", "path": str(path)}, RESNET, shard=64, steps=10, rounds=3)


def _compare(
    name: str, data: Mapping[str, Any], model: Mapping[str, Any], *, shard: int, steps: int, rounds: int
) -> None:
    arm = {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": steps, "keep": "last"}
    with shop([arm], samples=shard, shard=shard, data=data, model=model) as place:
        module = place.module(frozen=False)
        x, y = place.samples(place.cells[0])
        ours, naive = [], []
        results = _results(place)
        try:
            for _ in range(rounds):
                ours.append(_gradients_per_s(results))
                naive.append(_naive_gradients_per_s(module, x, y))
        finally:
            results.close()
    print(
        f"{name:9}: PGD-{steps} cells of {shard} samples in {WORKERS} workers {np.median(ours):7.0f} gradients/s; "
        f"naive loop {np.median(naive):7.0f}; ratio {median_ratio(ours, naive):.2f}",
        flush=True,
    )


def _results(place: Shop) -> Iterator[CellResult]:
    """What the workers bring, cell after cell; while nobody asks, they finish the cells they have and wait."""
    bench = place.bench
    assignment = Assignment(
        study=bench.study,
        folder=bench.folder,
        run=bench.run,
        device="cpu",
        data=bench.material.data,
        digests={"model": place.model.digest},
        python_path=tuple(sys.path),
        modules=(),
    )
    pool = WorkerPool(assignment, workers=WORKERS).run(itertools.cycle(place.cells))
    try:
        yield from (result for result in pool if result is not None)
    finally:
        pool.close()


def _gradients_per_s(results: Iterator[CellResult]) -> float:
    """Of cells that begin after the workers have handed in what lay ready, so that no start-up counts."""
    for _ in range(WORKERS):
        next(results)
    began = time.perf_counter()
    done = [next(results) for _ in range(CELLS * WORKERS)]
    elapsed_s = time.perf_counter() - began
    assert not any(result.n_errors for result in done), done[0].messages
    time.sleep(1.5 * elapsed_s / CELLS)  # the workers finish the cells they have
    return sum(n_passes(result)[1] for result in done) / elapsed_s


def _naive_gradients_per_s(module: nn.Module, x: Tensor, y: Tensor) -> float:
    torch.set_num_threads(THREADS)
    n, began = 0, time.perf_counter()
    while time.perf_counter() - began < NAIVE_S:
        inputs = x.clone().requires_grad_(True)
        F.cross_entropy(module(inputs), y).backward()
        n += len(x)
    elapsed_s = time.perf_counter() - began
    torch.set_num_threads(1)
    return n / elapsed_s


if __name__ == "__main__":
    main()
