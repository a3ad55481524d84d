"""Columns of a table whose numbers have moved since the model was trained."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.columns import named, numeric, rounded
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "column-drift",
    traits=CorruptionTraits(
        "a sensor loses its calibration, or the population changes",
        cause="table",
        inputs="tables",
        levels={"shift_scales": (0.1, 0.25, 0.5, 1.0, 2.0)},
    ),
)
def column_drift(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    shift_scales: float,
    column: Annotated[int, Ge(0)] | None = None,
    share: Annotated[float, Gt(0), Le(1)] = 0.25,
) -> Tensor:
    """A column's numbers move by `shift_scales` units of its scale: x + `shift_scales` · scale.

    With `column` (its index, from 0) that one moves, in the direction of the sign. Without it, each column that holds
    numbers moves with probability `share`, independently for every sample, up or down with equal probability.
    Categories and immutable columns stay; whole numbers are rounded.
    """
    drawn = noise.uniform(rows, tuple(x.shape[1:]))  # below the share: struck, and down in the lower half of it
    if column is not None:
        struck, sign = named(x, space, column), torch.ones_like(drawn)
    else:
        struck = numeric(x, space) & (drawn < share)
        sign = torch.where(drawn < share / 2, -1.0, 1.0)
    return torch.where(struck, rounded(x + sign * shift_scales * space.scale, space), x)
