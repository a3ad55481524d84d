"""Models whose answer to an input depends on the others in its batch: how that shows, and how it is avoided."""

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
    """A module, or a function, that is asked about so many inputs at a time."""

    def __init__(self, answer: Callable[[Tensor], Tensor], size: int) -> None:
        super().__init__()
        self.answer, self.size = answer, size

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.answer(part) for part in torch.split(x, self.size)])


def in_batches(loaded: Loaded, size: int) -> Loaded:
    """The same model, asked about so many inputs at a time. It is another one, as its answers may differ."""
    made = InBatches(loaded.answer, size)
    return replace(
        loaded,
        answer=made,
        module=made if loaded.answer is loaded.module else loaded.module,
        content=digest([loaded.content, "batch", size]),
        min_rows=min(loaded.min_rows, size),
    )


def depends_on_batch(ask: Callable[[Tensor], Tensor], x: Tensor, low: Tensor, high: Tensor) -> bool:
    """Whether the first half of a batch is answered otherwise beside other inputs.

    The first half keeps to the middle of what inputs may be. Its neighbours do, too, and then lie at the bounds, more
    often at the upper one: means, spreads and extremes over the batch all change. A model that answers the same batch
    in two ways tells nothing.
    """
    half, middle = len(x) // 2, (low + high) / 2
    calm = middle + (x - middle) / 2
    extreme = torch.where(x > (low + middle) / 2, high, low)
    first = ask(calm)
    beside = ask(torch.cat([calm[:half], extreme[half:]]))
    if _alike(first[:half], beside[:half]):
        return False
    return torch.equal(first, ask(calm))


def depends_on_neighbours(ask: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Whether own inputs, from the darkest to the brightest, are answered otherwise in other company.

    The outermost ones are asked beside copies of themselves, and each half beside its own copy: so a model that mixes
    rows of dark batches alone shows it, too. All batches are of one size, and every row stays at its place in them.
    """
    mixed, half = ask(x), len(x) // 2
    for rows in (slice(0, 1), slice(len(x) - 1, len(x)), slice(0, half), slice(half, 2 * half)):
        places = torch.arange(len(x))
        n = rows.stop - rows.start
        company = x[rows.start + (places - rows.start) % n]  # those rows stay where they are
        if not _alike(mixed[rows], ask(company)[rows]):
            return torch.equal(mixed, ask(x))
    return False


def _alike(one: Tensor, two: Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, two)
    largest = float(one.abs().nan_to_num(0.0).amax())
    return torch.allclose(one, two, rtol=_TOLERANCE, atol=_TOLERANCE * largest, equal_nan=True)
