"""Motion blur: the camera or the scene moves while the shutter is open."""

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.kernels import convolved, shorter_side
from advrisk.parts.corruptions.registry import corruptions

_POINTS = 8  # on each pixel of the way


@corruptions.register(
    "motion-blur",
    traits=CorruptionTraits(
        "a camera, or what it looks at, moves",
        cause="sensor",
        inputs="images",
        levels={"length_pct": (8.0, 12.0, 17.0, 24.0, 32.0)},
    ),
)
def motion_blur(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,  # noqa: ARG001
    *,
    length_pct: Annotated[float, Ge(0), Le(100)],
) -> Tensor:
    """The mean along a straight way through each pixel, in a direction ~ uniform on [0°, 180°) for each image.

    The way's length is `length_pct` percent of the image's shorter side. Values between pixels are interpolated
    (bilinear), at 8 points for each pixel of the way; beyond the edge there is what the nearest pixel of it shows.
    """
    angles = (math.pi * noise.uniform(rows, ()).double()).tolist()
    return convolved(x, line_kernels(length_pct / 100 * shorter_side(x), angles))


def line_kernels(length: float, angles: Sequence[float]) -> Tensor:
    """Points spread evenly on lines through the middle, each shared among the four pixels around it; sums are one."""
    count, reach = max(1, math.ceil(_POINTS * length)), int(length / 2) + 1
    along = ((torch.arange(count, dtype=torch.float64) + 0.5) / count - 0.5) * length
    down, right = (
        torch.tensor([turn(angle) for angle in angles], dtype=torch.float64)[:, None] * along + reach
        for turn in (math.sin, math.cos)
    )
    top, left, row = down.floor(), right.floor(), torch.arange(len(angles))[:, None].expand_as(down)
    kernels = torch.zeros(len(angles), 2 * reach + 2, 2 * reach + 2, dtype=torch.float64)
    for i, tall in ((top, top + 1 - down), (top + 1, down - top)):
        for j, wide in ((left, left + 1 - right), (left + 1, right - left)):
            kernels.index_put_((row, i.long(), j.long()), tall * wide, accumulate=True)
    kernels = kernels[:, :-1, :-1]  # what is cut off has no weight
    return kernels / kernels.sum((1, 2), keepdim=True)
