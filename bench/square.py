"""What the Square attack costs beside the passes that it asks for."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from advrisk.plan import Cell
from advrisk.testing import toys
from bench.cells import Shop, shop
from bench.nets import SURE_LENET
from bench.timing import processor_s

EPS = {"linf": 0.2, "l2": 1.6, "l1": 8.0}


def main(*, tiny: bool = False) -> None:
    """Print the overhead on two nets, in each norm."""
    samples, queries = (1, 5) if tiny else (100, 1000)
    print(f"Square, {queries} queries: a cell's processor seconds / those of the same batches through the module alone")
    for name, net in (("small CNN", {"source": "demo", "name": "trades"}), ("LeNet-5", SURE_LENET)):
        for norm, eps in list(EPS.items())[: 1 if tiny else None]:
            _measure(name, net, norm, eps, queries, samples)


def _measure(name: str, model: dict[str, Any], norm: str, eps: float, queries: int, samples: int) -> None:
    arm = {"attack": "square", "norm": norm, "eps": eps, "queries": queries}
    with shop([arm], samples=samples, shard=samples, model=model) as place:
        (cell,) = place.cells
        batches = list(_batches(place, cell))
        raw = wall = 0.0
        for _ in range(2):
            raw += processor_s(lambda: _ask_all(place, batches))
            wall += processor_s(lambda: place.run_cell(cell))
    size = sum(len(batch) for batch in batches) / len(batches)
    print(f"  {name:12} {norm:4} {eps:6g} {wall / raw:9.2f}   (batches of {size:.0f} on average)", flush=True)


def _batches(place: Shop, cell: Cell) -> Iterator[Tensor]:
    """What goes through the model for a cell, padding and the judge's passes included."""
    model, record = toys.recorded(place.model)
    place.run_cell_on(model, cell)
    for x, _ in record.passes:
        yield x


def _ask_all(place: Shop, batches: list[Tensor]) -> None:
    with torch.no_grad():
        for x in batches:
            place.model.answer(x)


if __name__ == "__main__":
    main()
