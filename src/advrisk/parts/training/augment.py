"""Augmentation: images flipped, turned, scaled and shifted at random before training."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def augmented(
    x: Tensor,
    generator: torch.Generator,
    *,
    rotation_deg: float = 0.0,
    shift_pct: float = 0.0,
    scale_pct: float = 0.0,
    horizontal_flip: bool = False,
    vertical_flip: bool = False,
) -> Tensor:
    """Images (rows × channels × height × width), each flipped, turned, scaled and shifted at random.

    Uniform: an angle within ±rotation_deg, a size within ±scale_pct, and shifts within ±shift_pct of height and width.
    A flip comes first, and happens to every second image on average: left for right, or top for bottom.
    """
    angle, scale, across, down = 2 * torch.rand(4, len(x), generator=generator, dtype=torch.float64) - 1
    for is_asked, axis in ((horizontal_flip, 3), (vertical_flip, 2)):
        if is_asked:
            chosen = torch.rand(len(x), generator=generator) < 0.5
            x = torch.where(chosen.to(x.device)[:, None, None, None], x.flip(axis), x)
    if not (rotation_deg or shift_pct or scale_pct):
        return x
    return moved(
        x,
        turn_rad=-angle * math.radians(rotation_deg),
        scale=1 + scale * scale_pct / 100,
        across=across * shift_pct / 100,
        down=down * shift_pct / 100,
    )


def moved(x: Tensor, *, turn_rad: Tensor, scale: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Images turned about their middle, against the clock, and scaled, then shifted by shares of width and height.

    Bilinear; pixels from outside repeat the nearest pixel, so values stay within the range of the image. The corruption
    `rotation` turns in the same way; this function must be fast, that one exact for every row.
    """
    height, width = x.shape[-2:]
    cos, sin = turn_rad.cos() / scale, turn_rad.sin() / scale
    # The origin of each pixel of the result, in coordinates from −1 to 1 along either axis.
    turned = torch.stack([torch.stack([cos, -sin * height / width], 1), torch.stack([sin * width / height, cos], 1)], 1)
    shifted = turned @ torch.stack([-2 * across, -2 * down], 1)[:, :, None]
    grid = F.affine_grid(torch.cat([turned, shifted], 2).to(x.dtype), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
