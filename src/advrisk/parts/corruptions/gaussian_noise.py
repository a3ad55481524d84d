"""Gaussian noise, as a warm or underexposed sensor adds it."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.light import span
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "gaussian-noise",
    traits=CorruptionTraits(
        "sensors work in poor light", cause="noise", levels={"sigma": (0.04, 0.08, 0.12, 0.18, 0.26)}
    ),
    version=2,
)
def gaussian_noise(x: Tensor, noise: Noise, rows: Tensor, space: Space, *, sigma: Annotated[float, Ge(0)]) -> Tensor:
    """Independent normal noise on every feature: x + sigma·(high − low)·z, with z ~ normal(0, 1)."""
    return x + sigma * span(space) * noise.normal(rows, tuple(x.shape[1:]))
