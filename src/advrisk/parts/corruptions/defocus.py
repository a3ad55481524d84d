"""Defocus: a lens that is set to another distance."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.kernels import convolved, shorter_side
from advrisk.parts.corruptions.registry import corruptions

_POINTS = 17  # on each axis of a pixel, one of them in its middle


@corruptions.register(
    "defocus",
    traits=CorruptionTraits(
        "cameras are out of focus",
        cause="sensor",
        random=False,
        inputs="images",
        levels={"radius_pct": (2.5, 3.5, 5.0, 7.0, 9.5)},
    ),
)
def defocus(
    x: Tensor,
    noise: Noise,  # noqa: ARG001
    rows: Tensor,  # noqa: ARG001
    space: Space,  # noqa: ARG001
    *,
    radius_pct: Annotated[float, Ge(0), Le(100)],
) -> Tensor:
    """Every point becomes a disc of even light: the mean of the pixels within a radius; not random.

    The radius is `radius_pct` percent of the image's shorter side. A pixel counts with the share of it that lies within
    the disc, found at 17 × 17 points; beyond the edge there is what the nearest pixel of it shows.
    """
    return convolved(x, disc_kernel(radius_pct / 100 * shorter_side(x))[None])


def disc_kernel(radius: float) -> Tensor:
    """The share of each pixel within that many pixels of the middle, in proportion; their sum is one."""
    reach = math.floor(radius + 0.5)
    points = torch.arange(-reach * _POINTS - _POINTS // 2, reach * _POINTS + _POINTS // 2 + 1, dtype=torch.float64)
    inside = torch.hypot(points[:, None], points) <= radius * _POINTS
    counts = inside.view(2 * reach + 1, _POINTS, 2 * reach + 1, _POINTS).double().sum((1, 3))
    return counts / counts.sum()
