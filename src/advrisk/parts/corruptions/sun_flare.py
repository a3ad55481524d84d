"""The sun, or a lamp, shining into the lens."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.light import span
from advrisk.parts.corruptions.registry import corruptions
from advrisk.parts.corruptions.scatter import cosine_and_sine

_RAYS = 3  # lines through the source: six arms
_GHOSTS = 3
_REACH = 2.5  # of a ray, in halos
_NARROWEST = 0.75  # pixels to either side of a ray: narrower, and it would break into dots


@corruptions.register(
    "sun-flare",
    traits=CorruptionTraits(
        "cameras look towards the sun or into headlights",
        cause="weather",
        inputs="images",
        levels={"glare_pct": (60, 80, 100, 120, 140), "halo_pct": (6, 9, 12, 16, 20)},
    ),
    version=2,
)
def sun_flare(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    glare_pct: Annotated[float, Ge(0)],
    halo_pct: Annotated[float, Gt(0), Le(200)] = 15.0,
) -> Tensor:
    """Light that the lens scatters is added: x + range · glare · (halo + (1 − halo) · max(rays, ghosts)).

    So it is `glare_pct` of the range at the source, where all rays meet, and less anywhere else. The source is uniform
    over the picture. At ρ = distance / (`halo_pct` of the shorter side) the halo is 1 / (1 + ρ²)². Six rays leave it at
    equal angles, the first one uniform: half as bright, 2.5 times as long, and reaching a tenth of the halo to either
    side, but 0.75 pixels at least. Three ghosts, discs of a tenth of the glare, lie on the line from the source through
    the middle of the picture, 0.5 to 2.5 times as far away as that, and have radii from 0.2 to 0.6 halos, both uniform.
    """
    size, glare = (x.shape[2], x.shape[3]), glare_pct / 100
    halo = halo_pct / 100 * min(size)
    drawn = noise.uniform(rows, (3 + 2 * _GHOSTS,))
    sides = torch.tensor(size, device=x.device, dtype=x.dtype)
    source = drawn[:, :2] * sides
    beside = _rays(source, size, halo, drawn[:, 2:3] * 180 / _RAYS)
    for ghost in range(_GHOSTS):
        along, large = drawn[:, 3 + 2 * ghost : 4 + 2 * ghost], drawn[:, 4 + 2 * ghost : 5 + 2 * ghost]
        middle = source + (sides / 2 - source) * (0.5 + 2 * along)
        beside = beside.maximum(0.1 * _disc(middle, size, halo * (0.2 + 0.4 * large)))
    around = _halo(source, size, halo)
    light = around + (1 - around) * beside
    return x + span(space) * (glare * light).unsqueeze(1)


def _from(point: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """How many pixels each pixel lies below and right of a point: rows × height × 1 and rows × 1 × width."""
    down, right = (torch.arange(side, device=point.device) + 0.5 for side in size)
    return down.view(1, -1, 1) - point[:, 0].view(-1, 1, 1), right.view(1, 1, -1) - point[:, 1].view(-1, 1, 1)


def _halo(source: Tensor, size: tuple[int, int], halo: float) -> Tensor:
    down, right = _from(source, size)
    return 1 / (1 + (down.square() + right.square()) / halo**2).square()


def _rays(source: Tensor, size: tuple[int, int], halo: float, first_deg: Tensor) -> Tensor:
    down, right = _from(source, size)
    width = max(halo / 10, _NARROWEST)
    light = torch.zeros(1, device=source.device)
    for ray in range(_RAYS):
        cosine, sine = (part.view(-1, 1, 1) for part in cosine_and_sine(first_deg + ray * 180 / _RAYS))
        along, across = down * cosine + right * sine, right * cosine - down * sine
        sharp = (1 - (across / width).square()).clamp_min(0).square()
        light = light.maximum(0.5 * sharp / (1 + (along / (_REACH * halo)).square()).square())
    return light


def _disc(middle: Tensor, size: tuple[int, int], radius: Tensor) -> Tensor:
    down, right = _from(middle, size)
    far = (down.square() + right.square()).sqrt()
    return (radius.view(-1, 1, 1) + 0.5 - far).clamp(0, 1)
