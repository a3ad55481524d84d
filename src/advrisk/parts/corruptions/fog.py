"""Fog between the scene and the camera."""

from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.plasma import plasma
from advrisk.parts.corruptions.registry import corruptions
from advrisk.parts.corruptions.veil import veiled

_BRIGHTNESS = 0.9  # of fog with nothing behind it


@corruptions.register(
    "fog",
    traits=CorruptionTraits(
        "cameras work outdoors",
        cause="weather",
        inputs="images",
        levels={"optical_depth": (0.2, 0.4, 0.7, 1.2, 2.0)},
    ),
)
def fog(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    optical_depth: Annotated[float, Ge(0)],
    patchiness: Annotated[float, Ge(0), Le(3)] = 0.5,
) -> Tensor:
    """Koschmieder's law: x · t + fog · (1 − t), of which the share t = exp(−β·d) comes from the scene.

    β·d has the mean `optical_depth`; at 3.9 an object is at the limit of visibility. Depth d is a smooth random field
    of the mean one: d = exp(s·F − s²/2), with s = `patchiness` and F standard normal at every pixel, large clouds with
    ever smaller ones on them (see `plasma`). Fog is as bright as 90 % of the range.
    """
    field = plasma(noise, rows, (x.shape[2], x.shape[3]), cells=2, fade=0.5).double()
    depth = (patchiness * field - patchiness**2 / 2).exp()
    hidden = -(-optical_depth * depth).expm1()
    return veiled(x, hidden.to(x.dtype), space, brightness=_BRIGHTNESS)
