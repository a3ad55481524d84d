"""What attacks cost beside the raw passes that they ask for, on one thread."""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from advrisk.plan import Cell
from bench.cells import Shop, n_passes, shop
from bench.timing import seconds

STEPS, EPS, SAMPLES, SHARD = 40, 0.2, 512, 128
ROUNDS = 2
PASSES = 10  # raw passes before and after each cell

Answer = Callable[[Tensor], Tensor]


def main() -> None:
    """Print wall / (counted passes × raw pass), for the module the runner asks and for its owner's."""
    print(f"{STEPS} steps in linf on the small CNN, {SHARD} samples per cell; the median of {4 * ROUNDS} cells.")
    print("A cell's seconds (attack, judge, rows) / seconds of its passes alone, if they go through")
    print("                      the runner's module    the owner's module, frozen")
    arm = {"attack": ["pgd", "apgd"], "norm": "linf", "eps": EPS, "steps": STEPS, "keep": ["last", "first"]}
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with shop([arm], samples=SAMPLES, shard=SHARD) as place:
        owners = place.module(frozen=True)
        for cell in place.cells * ROUNDS:
            found.setdefault((cell.arm.family, cell.arm.keep), []).append(_overheads(place, cell, owners))
    for (attack, keep), pairs in found.items():
        runners, own = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"  {attack:5} keep {keep:6} {runners:14.2f} {own:22.2f}", flush=True)
    print("With keep: first, samples leave the batch as they fall, and small batches cost more per sample.")


def _overheads(place: Shop, cell: Cell, owners: Answer) -> tuple[float, float]:
    """The cell's seconds over those of its passes through each of two modules, all measured around it."""
    x, _ = place.samples(cell)
    answers = (place.model.answer, owners)
    before = [_raw_pass(answer, x) for answer in answers]
    results = []
    wall = seconds(lambda: results.append(place.carry_out(cell)))
    after = [_raw_pass(answer, x) for answer in answers]
    n_forward, n_backward = n_passes(results[0])
    asked = [
        n_backward * (first[1] + last[1]) / 2 + (n_forward - n_backward) * (first[0] + last[0]) / 2
        for first, last in zip(before, after, strict=True)
    ]
    return wall / asked[0], wall / asked[1]


def _raw_pass(answer: Answer, x: Tensor) -> tuple[float, float]:
    """Seconds per sample of a bare forward, and of a bare forward with its input gradient."""

    def forward() -> None:
        with torch.no_grad():
            for _ in range(PASSES):
                answer(x)

    def gradient() -> None:
        for _ in range(PASSES):
            inputs = x.clone().requires_grad_(True)
            torch.autograd.grad(answer(inputs).sum(), inputs)

    return seconds(forward) / PASSES / len(x), seconds(gradient) / PASSES / len(x)


if __name__ == "__main__":
    main()
