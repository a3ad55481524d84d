"""Snow between the scene and the camera."""

import math
from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions
from advrisk.parts.corruptions.scatter import cosine_and_sine, scattered, transmission
from advrisk.parts.corruptions.veil import veiled

_DRAWN_OUT = 1.4  # how much longer than wide a flake is, as it moves
_MEAN_SQUARE = 13 / 12  # of a number that is uniform from 0.5 to 1.5


@corruptions.register(
    "snow",
    traits=CorruptionTraits(
        "cameras work outdoors in winter",
        cause="weather",
        inputs="images",
        levels={"coverage_pct": (4, 8, 15, 25, 40)},
    ),
)
def snow(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    coverage_pct: Annotated[float, Ge(0), Le(100)],
    size_pct: Annotated[float, Ge(1), Le(50)] = 4.5,
    direction_deg: Annotated[float, Ge(-90), Le(90)] = 0.0,
    spread_deg: Annotated[float, Ge(0), Le(90)] = 30.0,
) -> Tensor:
    """White flakes with soft edges, large ones near and small ones far, a little drawn out by their fall.

    Their number is Poisson, such that their opacities add up to `coverage_pct` of the picture on average: 1 −
    exp(−coverage) of the light is replaced. Middles are uniform. A flake's opacity is (1 − ρ²)² up to ρ = 1, with ρ =
    distance / R, where R is uniform from half to one and a half `size_pct` of the shorter side across the fall and
    1.4 times that along it; R is also the width at which half of the light passes. A picture's direction of fall is
    normal around `direction_deg` (0: straight down, 90: to the right) with the deviation `spread_deg`. A flake smaller
    than a pixel is drawn as large as one, and fainter.
    """
    size = (x.shape[2], x.shape[3])
    radius = size_pct / 100 * min(size)
    each = _DRAWN_OUT * math.pi / 3 * radius**2 * _MEAN_SQUARE
    mean = coverage_pct / 100 * size[0] * size[1] / each
    reach = _DRAWN_OUT * max(1.5 * radius, 1.0)
    flakes = scattered(noise, rows, size, mean=mean, margin=reach, extras=1)
    ahead_down, ahead_right = (
        part.view(-1, 1, 1) for part in cosine_and_sine(_direction(noise, rows, direction_deg, spread_deg))
    )
    true = radius * (0.5 + flakes.own[..., 0])
    drawn = true.clamp_min(1.0)
    peak = (true / drawn).square()

    def flake(down: Tensor, right: Tensor, slot: int) -> Tensor:
        along, across = down * ahead_down + right * ahead_right, right * ahead_down - down * ahead_right
        wide, strength = (each[:, slot].view(-1, 1, 1) for each in (drawn, peak))
        far = ((along / _DRAWN_OUT).square() + across.square()) / wide.square()
        return strength * (1 - far).clamp_min(0).square()

    return veiled(x, 1 - transmission(flakes, size, flake, reach=reach), space, brightness=1.0)


def _direction(noise: Noise, rows: Tensor, direction_deg: float, spread_deg: float) -> Tensor:
    return direction_deg + spread_deg * noise.normal(rows, (1,))
