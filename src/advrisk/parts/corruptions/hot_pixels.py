"""Hot pixels: pixels of a sensor that always read full."""

from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "hot-pixels",
    traits=CorruptionTraits(
        "sensors are old, or warm from a long exposure",
        cause="sensor",
        inputs="images",
        levels={"share": (0.002, 0.005, 0.01, 0.02, 0.05)},
    ),
)
def hot_pixels(x: Tensor, noise: Noise, rows: Tensor, space: Space, *, share: Annotated[float, Ge(0), Le(1)]) -> Tensor:
    """Each pixel is hot with probability `share`, and then reads the highest value in one channel ~ uniform among them.

    A pixel of a sensor lies behind a filter of one colour, so in colour pictures a hot pixel is red, green or blue.
    """
    channels, height, width = x.shape[1:]
    drawn = noise.uniform(rows, (2, 1, height, width))
    channel = (drawn[:, 1] * channels).floor()
    struck = channel == torch.arange(channels, device=x.device).view(-1, 1, 1)
    return torch.where((drawn[:, 0] < share) & struck, space.high, x)
