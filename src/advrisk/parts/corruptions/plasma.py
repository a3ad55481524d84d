"""Smooth random fields without a size of their own: large clouds, and ever smaller ones on them."""

import math

import torch
from torch import Tensor

from advrisk.engine import Noise


def plasma(noise: Noise, rows: Tensor, size: tuple[int, int], *, cells: int, fade: float) -> Tensor:
    """A field for each row whose value at every pixel is standard normal: rows × height × width.

    F = Σ_k fade^k · V_k / sqrt(Σ_k fade^2k) over octaves k. V_k lets normal numbers on a grid of cells · 2^k squares
    along the longer side run into each other, and is divided by its standard deviation at each pixel. Octaves end where
    their squares become smaller than two pixels.
    """
    longer = max(size)
    octaves = [k for k in range(8) if k == 0 or longer / (cells * 2**k) >= 2]
    field, *finer = (fade**k * _clouds(noise, rows, size, pixels=longer / (cells * 2**k)) for k in octaves)
    for clouds in finer:
        field = field + clouds
    return field / math.sqrt(sum(fade ** (2 * k) for k in octaves))


def _clouds(noise: Noise, rows: Tensor, size: tuple[int, int], *, pixels: float) -> Tensor:
    """Normal numbers on a grid of squares, blended between its corners: one octave."""
    corners = tuple(int((side - 0.5) / pixels) + 2 for side in size)
    values = noise.normal(rows, corners)
    (top, low), (left, wide) = (_places(side, pixels, values.device) for side in size)
    low, wide = low.view(-1, 1), wide.view(1, -1)
    upper = values[:, top][:, :, left] * (1 - wide) + values[:, top][:, :, left + 1] * wide
    lower = values[:, top + 1][:, :, left] * (1 - wide) + values[:, top + 1][:, :, left + 1] * wide
    spread = ((1 - low) ** 2 + low**2) * ((1 - wide) ** 2 + wide**2)
    return (upper * (1 - low) + lower * low) / spread.sqrt()


def _places(side: int, pixels: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """The square of each pixel, and the share of its way to the next square, eased in and out."""
    position = (torch.arange(side, dtype=torch.float64, device=device) + 0.5) / pixels
    square = position.floor()
    way = position - square
    return square.long(), (way * way * (3 - 2 * way)).float()
