"""Adam for a batch of points, each with its own state."""

import torch
from torch import Tensor

from advrisk.parts.attacks.moves import per_row

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Running means of slopes and of their squares (Kingma & Ba 2015, arXiv:1412.6980), one row per point.

    torch's own cannot drop rows. With `one_scale`, the square is that of a row's whole slope, not of each feature: the
    direction then stays that of the slope; with one scale per feature it is nearly its sign.
    """

    def __init__(self, like: Tensor, *, one_scale: bool = False) -> None:
        self._mean, self._one_scale = torch.zeros_like(like), one_scale
        self._square = torch.zeros_like(like.flatten(1)[:, 0] if one_scale else like)
        self._steps = 0

    def direction(self, slope: Tensor) -> Tensor:
        """m̂ / (√v̂ + ε) after one more slope of each row."""
        self._steps += 1
        self._mean.lerp_(slope, 1 - _BETA1)
        square = slope.flatten(1).square().mean(1) if self._one_scale else slope.square()
        self._square.lerp_(square, 1 - _BETA2)
        spread = (self._square / (1 - _BETA2**self._steps)).sqrt_().add_(_EPSILON)
        if self._one_scale:
            spread = per_row(spread, slope)
        return torch.div(self._mean, spread).div_(1 - _BETA1**self._steps)

    def keep(self, positions: Tensor) -> None:
        """Drop the state of all other rows."""
        self._mean, self._square = self._mean[positions], self._square[positions]
