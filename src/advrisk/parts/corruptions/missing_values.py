"""Entries of a table that are missing, and were filled in."""

from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.columns import changeable
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "missing-values",
    traits=CorruptionTraits(
        "forms are left open or sensors drop out, and something fills the gaps",
        cause="table",
        inputs="tables",
        levels={"share": (0.02, 0.05, 0.1, 0.2, 0.4)},
    ),
)
def missing_values(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    share: Annotated[float, Ge(0), Le(1)],
    fill: float | None = None,
) -> Tensor:
    """Each entry is missing with probability `share`, independently, and `fill` stands in its place.

    Without `fill` it is the column's lowest value, which is what zeros are where no number is negative. A `fill` beyond
    a column's bounds becomes the nearest value within them. Categories may be missing, too; immutable columns are not.
    """
    missing = noise.uniform(rows, tuple(x.shape[1:])) < share
    filled = space.low if fill is None else torch.tensor(fill, dtype=x.dtype, device=x.device)
    return torch.where(missing & changeable(x, space), filled, x)
