"""Blur: a soft lens."""

from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.kernels import convolved, shorter_side
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "blur",
    traits=CorruptionTraits(
        "lenses are soft or greasy",
        cause="sensor",
        random=False,
        inputs="images",
        levels={"sigma_pct": (1.5, 2.5, 3.5, 5.0, 7.0)},
    ),
)
def blur(
    x: Tensor,
    noise: Noise,  # noqa: ARG001
    rows: Tensor,  # noqa: ARG001
    space: Space,  # noqa: ARG001
    *,
    sigma_pct: Annotated[float, Ge(0), Le(100)],
) -> Tensor:
    """Gaussian blur: the mean of the pixels around, with weights ∝ exp(−d²/2σ²) at the distance d; not random.

    σ is `sigma_pct` percent of the image's shorter side. Weights end at 4σ; beyond the edge there is what the nearest
    pixel of it shows.
    """
    kernel = gaussian_kernel(sigma_pct / 100 * shorter_side(x))
    return convolved(convolved(x, kernel.view(1, -1, 1)), kernel.view(1, 1, -1))


def gaussian_kernel(sigma: float) -> Tensor:
    """Weights along a line, at whole pixels up to 4σ away; their sum is one."""
    reach = int(4 * sigma + 0.5)
    away = torch.arange(-reach, reach + 1, dtype=torch.float64)
    weights = torch.exp(-((away / sigma) ** 2) / 2) if reach else torch.ones(1, dtype=torch.float64)
    return weights / weights.sum()
