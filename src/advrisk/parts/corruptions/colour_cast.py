"""Colour cast: a white balance that is off, or coloured light."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "colour-cast",
    traits=CorruptionTraits(
        "the white balance is off or the light is coloured; for gray images use brightness",
        cause="sensor",
        inputs="images",
        levels={"stops": (0.15, 0.3, 0.5, 0.75, 1.0)},
    ),
)
def colour_cast(
    x: Tensor, noise: Noise, rows: Tensor, space: Space, *, stops: Annotated[float, Ge(0), Le(20)]
) -> Tensor:
    """Channels gain unequally: low + (x − low)·2^(stops·cos(φ − 2πc/C)) in channel c of C, φ ~ uniform on the circle.

    φ is the colour of the cast: 0 is red, a third of the circle green, two thirds blue. The gains of several channels
    multiply to one. A gray image has no colour: its one channel becomes brighter or darker by stops·cos φ, as a gray
    sensor sees coloured light.
    """
    channels = x.shape[1]
    channel = torch.arange(channels, dtype=torch.float64, device=x.device).view(-1, 1, 1) / channels
    drawn = stops * torch.cos(2 * math.pi * (noise.uniform(rows, (1, 1, 1)).double() - channel))
    return x + (x - space.low) * torch.expm1(drawn * math.log(2)).to(x.dtype)
