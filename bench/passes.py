"""What attacks cost beside the raw passes that they ask for, on one thread."""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from advrisk.plan import Cell
from bench.cells import Shop, n_passes, shop
from bench.timing import processor_s

EPS = 0.2
PASSES = 10  # raw passes before and after each cell

Answer = Callable[[Tensor], Tensor]


def main(*, tiny: bool = False) -> None:
    """Print wall / (counted passes × raw pass), for the module the runner asks and for its owner's."""
    steps, shard, rounds = (2, 4, 1) if tiny else (40, 128, 2)
    print(f"{steps} steps in linf on the small CNN, {shard} samples per cell; the median of {4 * rounds} cells.")
    print("A cell's processor seconds (attack, judge, rows) / those of its passes alone, if they go through")
    print("                      the runner's module    the owner's module, frozen")
    arm = {"attack": ["pgd", "apgd"], "norm": "linf", "eps": EPS, "steps": steps, "keep": ["last", "first"]}
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with shop([arm], samples=4 * shard, shard=shard) as place:
        owners = place.module(frozen=True)
        for cell in place.cells * rounds:
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
    taken = processor_s(lambda: results.append(place.run_cell(cell)))
    after = [_raw_pass(answer, x) for answer in answers]
    n_forward, n_backward = n_passes(results[0])
    asked = [
        n_backward * (first[1] + last[1]) / 2 + (n_forward - n_backward) * (first[0] + last[0]) / 2
        for first, last in zip(before, after, strict=True)
    ]
    return taken / asked[0], taken / asked[1]


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

    return processor_s(forward) / PASSES / len(x), processor_s(gradient) / PASSES / len(x)


if __name__ == "__main__":
    main()
