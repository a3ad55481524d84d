"""Frost on the glass in front of the camera."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.plasma import plasma
from advrisk.parts.corruptions.registry import corruptions
from advrisk.parts.corruptions.scatter import Opacity, Scattered, cosine_and_sine, scattered, transmission
from advrisk.parts.corruptions.veil import veiled

_BRIGHTNESS = 0.92
_CRYSTALS = 25  # in a picture, on average
_LENGTH = 0.5  # of a crystal, as a share of the shorter side
_BRANCH_DEG = 60.0  # between a crystal's stem and its branches
_THINNEST, _THICKEST = 0.25, 0.95  # opacity where the ice ends, and at its thickest


@corruptions.register(
    "frost",
    traits=CorruptionTraits(
        "cameras stand behind cold glass",
        cause="weather",
        inputs="images",
        levels={"coverage_pct": (10, 20, 33, 48, 66)},
    ),
)
def frost(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    coverage_pct: Annotated[float, Ge(0), Le(100)],
) -> Tensor:
    """Ice grows from the border inwards, along crystals, and covers exactly `coverage_pct` of the pixels, rounded.

    It takes the pixels where 2·c + k + F/4 is largest. c goes from 0 in the middle to 1 at the border. k, from 0 to 1,
    is what crystals hide: a Poisson number of them with the mean 25, uniform in position and direction, each
    with a stem of half the shorter side and branches at 60 degrees. F is a smooth field, standard normal at every pixel
    (see `plasma`). Opacity rises evenly from 0.25, where the ice ends, to 0.95. Ice is as bright as 92 % of the range.
    """
    size = (x.shape[2], x.shape[3])
    side = min(size)
    reach = _LENGTH * side / 2
    seeds = scattered(noise, rows, size, mean=_CRYSTALS, margin=reach, extras=1)
    growth = 2 * _closeness(size, x.device) + 1 - transmission(seeds, size, _crystal(seeds, side), reach=reach)
    growth = (growth + plasma(noise, rows, size, cells=3, fade=0.5) / 4).flatten(1)
    rank = growth.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    covered = round(coverage_pct / 100 * growth.shape[1])
    thickness = (covered - rank) / max(covered, 1)
    opacity = torch.where(rank < covered, _THINNEST + (_THICKEST - _THINNEST) * thickness, 0.0)
    return veiled(x, opacity.view(-1, *size), space, brightness=_BRIGHTNESS)


def _closeness(size: tuple[int, int], device: torch.device) -> Tensor:
    """0 in the middle of a picture, 1 at its border."""
    down, right = (((torch.arange(side, device=device) + 0.5) / side * 2 - 1).abs() for side in size)
    return torch.maximum(down.view(-1, 1), right.view(1, -1))


def _crystal(seeds: Scattered, side: int) -> Opacity:
    """A stem with branches on both sides, shorter towards its tip; on small pictures coarser than they would be."""
    length, apart, thick = _LENGTH * side, max(0.07 * side, 5.0), max(0.012 * side, 1.3)
    sine, tangent = math.sin(math.radians(_BRANCH_DEG)), math.tan(math.radians(_BRANCH_DEG))
    cosines, sines = cosine_and_sine(360 * seeds.own[..., 0])

    def opacity(down: Tensor, right: Tensor, slot: int) -> Tensor:
        ahead_down, ahead_right = (part[:, slot].view(-1, 1, 1) for part in (cosines, sines))
        along, across = (
            down * ahead_down + right * ahead_right + length / 2,
            (right * ahead_down - down * ahead_right).abs(),
        )
        root = (along - across / tangent) / apart  # where on the stem the branch through this pixel begins
        off = torch.minimum(across, (root - root.round()).abs() * apart * sine)
        inside = (along > 0) & (across < torch.minimum(0.4 * (length - along), 0.3 * along + 1))
        return torch.where(inside, 0.9 * (1 - off / thick).clamp_min(0), 0.0)

    return opacity
