"""Speckle: noise that grows with the signal."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "speckle-noise",
    traits=CorruptionTraits(
        "sensors send waves of their own: radar, ultrasound, laser",
        cause="noise",
        inputs="images",
        levels={"sigma": (0.1, 0.2, 0.3, 0.45, 0.6)},
    ),
)
def speckle_noise(x: Tensor, noise: Noise, rows: Tensor, space: Space, *, sigma: Annotated[float, Ge(0)]) -> Tensor:
    """Noise in proportion to the light: x + sigma·(x − low)·z, with z ~ normal(0, 1) for every value."""
    return x + sigma * (x - space.low) * noise.normal(rows, tuple(x.shape[1:]))
