"""Salt and pepper: pixels that are lost on the way."""

from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "salt-and-pepper",
    traits=CorruptionTraits(
        "pixels are lost in transmission or by a faulty converter",
        cause="noise",
        inputs="images",
        levels={"share": (0.01, 0.03, 0.07, 0.13, 0.22)},
    ),
)
def salt_and_pepper(
    x: Tensor, noise: Noise, rows: Tensor, space: Space, *, share: Annotated[float, Ge(0), Le(1)]
) -> Tensor:
    """Each pixel is lost with probability `share`: half of these read the lowest, half the highest, in all channels."""
    drawn = noise.uniform(rows, (1, *x.shape[2:]))
    return torch.where(drawn < share, torch.where(drawn < share / 2, space.low, space.high), x)
