"""Shadow: something stands between the light and a part of the scene."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions

_SOFT = 0.05  # the width of a shadow's edge, as a share of the image's shorter side; at least a pixel


@corruptions.register(
    "shadow",
    traits=CorruptionTraits(
        "shadows fall on what a camera sees",
        cause="sensor",
        inputs="images",
        levels={"depth": (0.2, 0.35, 0.5, 0.65, 0.8)},
    ),
)
def shadow(x: Tensor, noise: Noise, rows: Tensor, space: Space, *, depth: Annotated[float, Ge(0), Le(1)]) -> Tensor:
    """One side of a straight edge loses a share of its light: x − depth·w·(x − low), with w = 1 there and 0 elsewhere.

    The edge goes through a point ~ uniform on the image, and the shadow lies in a direction ~ uniform on the circle.
    Across the edge, w rises linearly over 5 % of the shorter side, or a pixel if that is more.
    """
    return x - depth * _shade(noise.uniform(rows, (3,)).double(), *x.shape[2:]).to(x.dtype) * (x - space.low)


def _shade(drawn: Tensor, height: int, width: int) -> Tensor:
    """The share of each pixel in the shadow: (rows, 1, height, width)."""
    at_down, at_right, angle = (drawn[:, column].view(-1, 1, 1, 1) for column in range(3))
    i = torch.arange(height, dtype=torch.float64, device=drawn.device).view(-1, 1) + 0.5 - at_down * height
    j = torch.arange(width, dtype=torch.float64, device=drawn.device) + 0.5 - at_right * width
    beyond = (2 * math.pi * angle).cos() * i + (2 * math.pi * angle).sin() * j
    return (beyond / max(1.0, _SOFT * min(height, width)) + 0.5).clamp(0, 1)
