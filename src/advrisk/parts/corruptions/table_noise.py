"""Measurement noise in a table."""

from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.columns import numeric, rounded
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "table-noise",
    traits=CorruptionTraits(
        "numbers are measured or typed in roughly",
        cause="table",
        inputs="tables",
        levels={"sigma_scales": (0.05, 0.1, 0.2, 0.4, 0.8)},
    ),
)
def table_noise(
    x: Tensor, noise: Noise, rows: Tensor, space: Space, *, sigma_scales: Annotated[float, Ge(0)]
) -> Tensor:
    """Independent normal noise on every number: x + `sigma_scales` · scale · z, with the scale that the space gives.

    Categories and immutable columns stay; whole numbers are rounded.
    """
    moved = x + sigma_scales * space.scale * noise.normal(rows, tuple(x.shape[1:]))
    return torch.where(numeric(x, space), rounded(moved, space), x)
