"""Which columns of a table a fault can strike, and what a number in them may become."""

import torch
from torch import Tensor

from advrisk.core.errors import StudyError
from advrisk.engine import Space


def changeable(x: Tensor, space: Space) -> Tensor:
    """The columns that are not immutable."""
    return _without(x, space.immutable, found="all columns of this table are immutable")


def numeric(x: Tensor, space: Space) -> Tensor:
    """The columns that hold numbers and are not immutable: arithmetic on the code of a category means nothing."""
    masks = [mask for mask in (space.immutable, space.category) if mask is not None]
    unfit = torch.stack(masks).any(0) if masks else None
    return _without(x, unfit, found="all columns of this table are categories or immutable")


def named(x: Tensor, space: Space, column: int) -> Tensor:
    """One column, by its place from 0, which must be a numeric one."""
    free = numeric(x, space).flatten()
    if column >= len(free):
        raise StudyError(f"column {column} was named, but this table has columns 0 to {len(free) - 1}")
    if not free[column]:
        kind = "immutable" if space.immutable is not None and space.immutable.flatten()[column] else "a category"
        fit = ", ".join(map(str, free.nonzero().flatten().tolist()[:20]))
        raise StudyError(f"column {column} was named, but it is {kind}; these would do: {fit}")
    return (torch.arange(len(free), device=x.device) == column).view(x.shape[1:])


def rounded(x: Tensor, space: Space) -> Tensor:
    """Whole numbers where the space wants them, the nearest ones: put back into the space they would be cut off."""
    return x if space.integer is None else torch.where(space.integer, x.round(), x)


def _without(x: Tensor, unfit: Tensor | None, *, found: str) -> Tensor:
    if unfit is None:
        return torch.ones(x.shape[1:], dtype=torch.bool, device=x.device)
    if unfit.all():
        raise StudyError(f"{found}, so nothing can happen to it; remove this corruption")
    return ~unfit.expand(x.shape[1:])
