"""Rain between the scene and the camera."""

from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions
from advrisk.parts.corruptions.scatter import bell, cosine_and_sine, scattered, transmission
from advrisk.parts.corruptions.veil import veiled

_GUST_DEG = 2.0  # how much the drops of one picture differ in direction
_OPACITY = 0.6
_BRIGHTNESS = 0.9  # a drop shows the sky


@corruptions.register(
    "rain",
    traits=CorruptionTraits(
        "cameras work outdoors",
        cause="weather",
        inputs="images",
        levels={"coverage_pct": (3, 6, 12, 20, 35), "length_pct": (10, 15, 20, 25, 30)},
    ),
)
def rain(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    coverage_pct: Annotated[float, Ge(0), Le(100)],
    direction_deg: Annotated[float, Ge(-90), Le(90)] = 0.0,
    spread_deg: Annotated[float, Ge(0), Le(90)] = 15.0,
    length_pct: Annotated[float, Ge(1), Le(100)] = 20.0,
    width_pct: Annotated[float, Ge(0.2), Le(20)] = 2.0,
) -> Tensor:
    """Bright streaks, the paths of drops while the shutter is open; all of one picture fall nearly the same way.

    Their number is Poisson, such that their areas add up to `coverage_pct` of the picture on average. Middles are
    uniform, lengths uniform from half to one and a half `length_pct` of the shorter side, and each is
    `width_pct` of it wide. A picture's direction is normal around `direction_deg` (0: straight down, 90: to the
    right) with the deviation `spread_deg`, a streak's normal around that with 2 degrees. A streak hides 60 % of what is
    behind it, so 1 − exp(−0.6 · coverage) of the light is replaced on average.
    """
    size = (x.shape[2], x.shape[3])
    length, width = (percent / 100 * min(size) for percent in (length_pct, width_pct))
    mean = coverage_pct / 100 * size[0] * size[1] / (length * width)
    reach = 0.75 * length + width / 2 + 1
    drops = scattered(noise, rows, size, mean=mean, margin=reach, extras=2)
    picture = direction_deg + spread_deg * noise.normal(rows, (1,))
    ahead_down, ahead_right = cosine_and_sine(picture + _GUST_DEG * bell(drops.own[..., 0]))
    halves = length * (0.5 + drops.own[..., 1]) / 2

    def streak(down: Tensor, right: Tensor, slot: int) -> Tensor:
        cosine, sine, half = (each[:, slot].view(-1, 1, 1) for each in (ahead_down, ahead_right, halves))
        along, across = (down * cosine + right * sine).abs(), (right * cosine - down * sine).abs()
        ends = (half + 0.5 - along).clamp(0, 1)
        return _OPACITY * ends * (width / 2 + 0.5 - across).clamp(0, min(width, 1.0))

    return veiled(x, 1 - transmission(drops, size, streak, reach=reach), space, brightness=_BRIGHTNESS)
