"""Rotation: a camera that is not level."""

from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions

_FINEST = 2.0**-20  # of a pixel: a position this near to a whole number becomes that number


@corruptions.register(
    "rotation",
    traits=CorruptionTraits(
        "a camera is not level, or things lie askew",
        cause="sensor",
        inputs="images",
        levels={"angle_deg": (5.0, 10.0, 15.0, 25.0, 40.0)},
    ),
)
def rotation(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,  # noqa: ARG001
    *,
    angle_deg: Annotated[float, Ge(0), Le(180)],
) -> Tensor:
    """Turned about its middle, against the clock, by an angle ~ uniform on [−angle_deg, angle_deg] for each image.

    Values between pixels are interpolated (bilinear). Beyond the edge there is what the nearest pixel of it shows.
    """
    return turned(x, angle_deg * (2 * noise.uniform(rows, (1,)).double() - 1))


def turned(x: Tensor, degrees: Tensor) -> Tensor:
    """Each image turned by its angle in degrees, (rows, 1) in float64; quarter turns of squares are exact."""
    height, width = x.shape[2:]
    i = torch.arange(height, dtype=torch.float64, device=x.device).repeat_interleave(width) - (height - 1) / 2
    j = torch.arange(width, dtype=torch.float64, device=x.device).repeat(height) - (width - 1) / 2
    cos, sin = torch.deg2rad(degrees).cos(), torch.deg2rad(degrees).sin()
    down, right = cos * i + sin * j + (height - 1) / 2, cos * j - sin * i + (width - 1) / 2
    return _interpolated(x, _within(down, height), _within(right, width))


def _within(position: Tensor, size: int) -> Tensor:
    return ((position / _FINEST).round() * _FINEST).clamp(0, size - 1)


def _interpolated(x: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """The values at these positions, (rows, pixels) each, between the four pixels around them."""
    height, width = x.shape[2:]
    flat, result = x.flatten(2), torch.zeros_like(x).flatten(2)
    top, left = down.floor(), right.floor()
    for i, tall in ((top, top + 1 - down), (top + 1, down - top)):
        for j, wide in ((left, left + 1 - right), (left + 1, right - left)):
            index = (i.clamp_max(height - 1) * width + j.clamp_max(width - 1)).long()[:, None]
            result += (tall * wide).to(x.dtype)[:, None] * flat.gather(2, index.expand_as(flat))
    return result.view_as(x)
