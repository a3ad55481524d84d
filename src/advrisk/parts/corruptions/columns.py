"""The columns of a table that a corruption may change, and the values that it may write there."""

import torch
from torch import Tensor

from advrisk.core.errors import StudyError
from advrisk.engine import Space


def changeable(x: Tensor, space: Space) -> Tensor:
    """The columns that are not immutable."""
    return _without(x, space.immutable, reason="all columns of this table are immutable")


def numeric(x: Tensor, space: Space) -> Tensor:
    """The columns that hold numbers and are not immutable: arithmetic on a category's code is meaningless."""
    masks = [mask for mask in (space.immutable, space.category) if mask is not None]
    unfit = torch.stack(masks).any(0) if masks else None
    return _without(x, unfit, reason="all columns of this table are categories or immutable")


def named(x: Tensor, space: Space, column: int) -> Tensor:
    """The mask of one numeric column, by its index from 0."""
    free = numeric(x, space).flatten()
    if column >= len(free):
        raise StudyError(f"found column {column}, but this table has columns 0 to {len(free) - 1}")
    if not free[column]:
        kind = "immutable" if space.immutable is not None and space.immutable.flatten()[column] else "a category"
        fit = ", ".join(map(str, free.nonzero().flatten().tolist()[:20]))
        raise StudyError(f"found column {column}, but it is {kind}; use one of {fit}")
    return (torch.arange(len(free), device=x.device) == column).view(x.shape[1:])


def rounded(x: Tensor, space: Space) -> Tensor:
    """Whole numbers, rounded to the nearest, where the space demands them: a projection would round towards x0."""
    return x if space.integer is None else torch.where(space.integer, x.round(), x)


def _without(x: Tensor, unfit: Tensor | None, *, reason: str) -> Tensor:
    if unfit is None:
        return torch.ones(x.shape[1:], dtype=torch.bool, device=x.device)
    if unfit.all():
        raise StudyError(f"{reason}, so nothing can change; remove this corruption")
    return ~unfit.expand(x.shape[1:])
