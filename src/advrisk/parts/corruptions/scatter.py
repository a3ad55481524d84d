"""Things scattered over a picture: a Poisson number of them at uniform places, and what still shows between them.

Each row has its own. What is computed for a row never depends on how many rows there are: functions that torch rounds
differently in the body and the tail of a vector (sine, cosine) are taken in float64.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from advrisk.engine import Noise

Opacity = Callable[[Tensor, Tensor, int], Tensor]


@dataclass(frozen=True)
class Scattered:
    """Rows × slots: in the first `count` slots of a row there is a thing, at (down, right) in pixels, at most `margin`
    beyond the picture.
    `own` are uniform numbers for whatever else is to be drawn for each thing.
    """

    count: Tensor
    down: Tensor
    right: Tensor
    own: Tensor
    margin: float


def scattered(
    noise: Noise, rows: Tensor, size: tuple[int, int], *, mean: float, margin: float, extras: int = 0
) -> Scattered:
    """Things of which `mean` have their middle in the picture, on average, and others within `margin` pixels of it.

    Without those, the picture would be covered less near its border.
    """
    whole = tuple(side + 2 * margin for side in size)
    count, slots = _poisson(noise, rows, mean * math.prod(whole) / math.prod(size))
    drawn = noise.uniform(rows, (slots, 2 + extras))
    down, right = (drawn[..., axis] * whole[axis] - margin for axis in range(2))
    return Scattered(count, down, right, drawn[..., 2:], margin)


def _poisson(noise: Noise, rows: Tensor, mean: float) -> tuple[Tensor, int]:
    """A Poisson number for each row, and the largest that there can be, by the inverse of its distribution."""
    from scipy.special import pdtr

    most = math.ceil(mean + 7 * math.sqrt(mean)) + 12
    below = pdtr(np.arange(most), mean)
    slots = max(1, int(np.searchsorted(below, 1 - 2**-24)))  # 24 bits are what a uniform number has
    drawn = noise.uniform(rows, (1,)).squeeze(1)
    count = np.searchsorted(below[:slots], drawn.cpu().numpy().astype(np.float64), side="right")
    return torch.from_numpy(count).to(drawn.device), slots


def transmission(things: Scattered, size: tuple[int, int], opacity: Opacity, *, reach: float) -> Tensor:
    """The share of light that passes between all things of a row: ∏ (1 − opacity), rows × height × width.

    `opacity(down, right, slot)` is that of one thing, at so many pixels below and right of its middle; it is zero
    farther away than `reach` on either axis, so that no more than this window is looked at. As the number of things is
    a Poisson one, the mean at each pixel is exp(−sum of their opacities over a picture / its area), exactly.
    """
    side = math.floor(2 * reach) + 2
    beyond = math.ceil(things.margin + reach) + 2  # windows may lie there
    height, width = (each + 2 * beyond for each in size)
    clear = torch.ones(len(things.count), height * width, device=things.down.device)
    steps = torch.arange(side, device=clear.device)
    for slot in range(int(things.count.max()) if len(things.count) else 0):
        down, right = (middle[:, slot].view(-1, 1) for middle in (things.down, things.right))
        rows, columns = ((middle - reach + 0.5).floor().long() + steps for middle in (down, right))
        index = ((rows + beyond).unsqueeze(2) * width + (columns + beyond).unsqueeze(1)).flatten(1)
        hidden = opacity((rows + 0.5 - down).unsqueeze(2), (columns + 0.5 - right).unsqueeze(1), slot).flatten(1)
        hidden = torch.where((things.count > slot).view(-1, 1), hidden, 0.0)
        clear.scatter_(1, index, clear.gather(1, index) * (1 - hidden))
    inner = slice(beyond, -beyond)
    return clear.view(-1, height, width)[:, inner, inner]


def bell(uniform: Tensor) -> Tensor:
    """Standard normal numbers from uniform ones on [0, 1)."""
    normal: Tensor = torch.special.ndtri(uniform.double() + 2**-25)  # halfway to the next number of 24 bits
    return normal


def cosine_and_sine(degrees: Tensor) -> tuple[Tensor, Tensor]:
    """Of angles, in float64 (see above), as float32."""
    angle = torch.deg2rad(degrees.double())
    return angle.cos().float(), angle.sin().float()
