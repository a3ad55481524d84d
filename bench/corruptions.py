"""What corruptions cost beside one forward pass of the demo's CNN, on one thread."""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions
from advrisk.parts.models.small import SmallCnn
from bench.timing import in_turn

LEVEL = 3
PASS = "a forward pass"


def main(*, tiny: bool = False) -> None:
    """Print milliseconds per 1,000 images of CIFAR's size, and how many passes that is."""
    torch.set_num_threads(1)
    images, rounds = (4, 1) if tiny else (1000, 5)
    x = torch.rand(images, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    works: dict[str, Callable[[], Any]] = {PASS: partial(_passed, SmallCnn(channels=3, size=32), x)}
    for part in corruptions:
        if part.traits.inputs != "tables":
            strength = {name: values[LEVEL - 1] for name, values in part.traits.levels.items()}
            works[part.name] = partial(_corrupted, part.function, x, strength)
    for work in works.values():
        work()  # what is done once for all is not measured
    taken = {name: statistics.median(seconds) for name, seconds in in_turn(works, rounds=rounds).items()}
    print(f"{images} images of 3 × 32 × 32 at level {LEVEL}; the median of {rounds} rounds.")
    print("                         ms    passes")
    for name, seconds in sorted(taken.items(), key=lambda item: item[1]):
        print(f"  {name:16} {1000 * seconds:9.1f} {seconds / taken[PASS]:9.2f}", flush=True)


def _passed(net: nn.Module, x: Tensor) -> None:
    with torch.no_grad():
        net(x)


def _corrupted(function: Callable[..., Tensor], x: Tensor, strength: dict[str, Any]) -> None:
    function(x, Noise(range(len(x))), torch.arange(len(x)), Space.box(0.0, 1.0), **strength)


if __name__ == "__main__":
    main()
