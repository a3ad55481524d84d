"""Gaussian noise on a share of the training samples."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.registry import training


@training.register(
    "gaussian-noise",
    traits=TrainingTraits("you want cheap hardening against noise and small perturbations", perturbs=True),
)
def gaussian_noise(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    sigma: Annotated[float, Gt(0)],
    share: Annotated[float, Ge(0), Le(1)] = 0.5,
) -> Tensor:
    """Cross-entropy, with normal noise of deviation sigma on a share of each batch, clipped to [0, 1]."""
    noise = sigma * torch.randn(x.shape, generator=generator)
    chosen = torch.rand(len(x), generator=generator) < share
    noisy = torch.where(chosen.view(-1, *[1] * (x.dim() - 1)), (x + noise).clamp(0, 1), x)
    return F.cross_entropy(module(noisy), y)
