"""Brightness: an exposure that is off."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "brightness",
    traits=CorruptionTraits(
        "a camera exposes too long or too short, or the light changes",
        cause="sensor",
        inputs="images",
        levels={"stops": (0.3, 0.6, 1.0, 1.5, 2.0)},
    ),
)
def brightness(
    x: Tensor, noise: Noise, rows: Tensor, space: Space, *, stops: Annotated[float, Ge(0), Le(20)]
) -> Tensor:
    """Another exposure: low + (x − low)·2^s, with s ~ uniform on [−stops, stops] for each image.

    Stored values are multiplied, as they are: no curve between light and value (gamma) is assumed.
    """
    drawn = stops * (2 * noise.uniform(rows, (1, 1, 1)).double() - 1)
    return x + (x - space.low) * torch.expm1(drawn * math.log(2)).to(x.dtype)
