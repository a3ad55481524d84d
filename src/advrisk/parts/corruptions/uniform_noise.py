"""Uniform noise, as coarse rounding adds it."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.light import span
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "uniform-noise",
    traits=CorruptionTraits(
        "values are converted or rounded coarsely", cause="noise", levels={"reach": (0.07, 0.14, 0.2, 0.3, 0.45)}
    ),
)
def uniform_noise(x: Tensor, noise: Noise, rows: Tensor, space: Space, *, reach: Annotated[float, Ge(0)]) -> Tensor:
    """Independent noise on every feature: x + (high − low)·u, with u ~ uniform on [−reach, reach]."""
    return x + reach * span(space) * (2 * noise.uniform(rows, tuple(x.shape[1:])) - 1)
