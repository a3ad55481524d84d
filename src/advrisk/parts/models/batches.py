"""Models whose answer to an input depends on the others in its batch: a test for them, and batches of a fixed size."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from advrisk.core.digest import digest
from advrisk.parts.models.registry import Loaded

_TOLERANCE = (
    1e-4  # of the largest answer; rows of batches of one size are equal to the last bit where nothing is shared
)


class InBatches(nn.Module):
    """A module, or a function, that takes at most `size` inputs at a time."""

    def __init__(self, answer: Callable[[Tensor], Tensor], size: int) -> None:
        super().__init__()
        self.answer, self.size = answer, size

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.answer(part) for part in torch.split(x, self.size)])


def in_batches(loaded: Loaded, size: int) -> Loaded:
    """The model with at most `size` inputs at a time; its digest changes, as its answers may."""
    made = InBatches(loaded.answer, size)
    return replace(
        loaded,
        answer=made,
        module=made if loaded.answer is loaded.module else loaded.module,
        content=digest([loaded.content, "batch", size]),
        min_rows=min(loaded.min_rows, size),
    )


def depends_on_batch(ask: Callable[[Tensor], Tensor], x: Tensor, low: Tensor, high: Tensor) -> bool:
    """Whether the answers to the first half of a batch change with the second half.

    The first half keeps to the middle of the bounds. The second half does so, too, and then lies at the bounds, more
    often at the upper one: means, spreads and extremes over the batch all change. A model that answers the same batch
    in two ways proves nothing.
    """
    half, middle = len(x) // 2, (low + high) / 2
    calm = middle + (x - middle) / 2
    extreme = torch.where(x > (low + middle) / 2, high, low)
    first = ask(calm)
    beside = ask(torch.cat([calm[:half], extreme[half:]]))
    if _close(first[:half], beside[:half]):
        return False
    return torch.equal(first, ask(calm))


def depends_on_neighbours(ask: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Whether the answers to the data's own inputs, from the darkest to the brightest, change with their batch mates.

    The first and the last are queried with copies of themselves, and each half with its own copy: this also exposes a
    model that mixes rows of dark batches alone. All batches have one size, and every row keeps its index.
    """
    mixed, half = ask(x), len(x) // 2
    for rows in (slice(0, 1), slice(len(x) - 1, len(x)), slice(0, half), slice(half, 2 * half)):
        indices = torch.arange(len(x))
        n = rows.stop - rows.start
        copies = x[rows.start + (indices - rows.start) % n]  # those rows keep their index
        if not _close(mixed[rows], ask(copies)[rows]):
            return torch.equal(mixed, ask(x))
    return False


def _close(one: Tensor, two: Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, two)
    largest = float(one.abs().nan_to_num(0.0).amax())
    return torch.allclose(one, two, rtol=_TOLERANCE, atol=_TOLERANCE * largest, equal_nan=True)
