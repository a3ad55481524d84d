"""Shot noise: light comes in grains, and a sensor counts them."""

from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.light import from_light, light
from advrisk.parts.corruptions.poisson import poisson_quantile
from advrisk.parts.corruptions.registry import corruptions

_UNSEEN = 1e-8  # less than a float32 can hold
_HALF_A_STEP = 2.0**-25  # draws are multiples of 2^-24; their quantile is that of the middle between two


@corruptions.register(
    "shot-noise",
    traits=CorruptionTraits(
        "there is little light, or exposures are short",
        cause="noise",
        inputs="images",
        levels={"sigma_white": (0.08, 0.13, 0.2, 0.3, 0.45)},
    ),
)
def shot_noise(x: Tensor, noise: Noise, rows: Tensor, space: Space, *, sigma_white: Annotated[float, Ge(0)]) -> Tensor:
    """Every value is a number of photons: low + (high − low)·N/n, with N ~ Poisson(n·(x − low)/(high − low)).

    n = 1/sigma_white² photons make the highest value, whose standard deviation is then `sigma_white`, as a share of
    high − low; that of darker values falls as the root of the light. N is the quantile of a uniform number (see
    `poisson_quantile`): exact for rates below 16, within 2·10⁻⁵ of the distribution function above.
    """
    if sigma_white < _UNSEEN:
        return x
    photons = sigma_white**-2
    rate = light(x, space).clamp_min(0).flatten().cpu().double().numpy() * photons
    level = noise.uniform(rows, tuple(x.shape[1:])).flatten().cpu().double().numpy() + _HALF_A_STEP
    counted = torch.from_numpy(poisson_quantile(level, rate)).view_as(x)
    return from_light((counted / photons).to(x.device, x.dtype), space)
