"""Gaussian noise, as a warm or underexposed sensor adds it."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register("gaussian-noise", traits=CorruptionTraits(use_when="sensors work in poor light", cause="noise"))
def gaussian_noise(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,  # noqa: ARG001
    *,
    sigma: Annotated[float, Ge(0)],
) -> Tensor:
    """Independent normal noise on every feature: x + sigma·z; sigma in the input's own unit."""
    return x + sigma * noise.normal(rows, tuple(x.shape[1:]))
