"""Inputs as amounts of light: 0 is the lowest value that there is, 1 the highest."""

import torch
from torch import Tensor

from advrisk.engine import Space


def span(space: Space) -> Tensor:
    """How far the bounds are apart: one number, or one for each feature."""
    return space.high - space.low


def light(x: Tensor, space: Space) -> Tensor:
    """Values as shares of the way from the lowest to the highest; 0 where the two are the same."""
    return torch.where(span(space) > 0, (x - space.low) / span(space), 0.0)


def from_light(share: Tensor, space: Space) -> Tensor:
    """Back from shares to values."""
    return space.low + share * span(space)
