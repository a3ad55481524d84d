"""Adversarial training: learn on the worst inputs of PGD."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.inner import perturbed
from advrisk.parts.training.registry import training


@training.register(
    "pgd",
    traits=TrainingTraits("you want hardening against linf attacks, at steps + 1 times the cost", perturbs=True),
    version=2,
)
def pgd(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    eps: Annotated[float, Gt(0)],
    steps: Annotated[int, Ge(1)] = 10,
    step_size: Annotated[float, Gt(0)] | None = None,
) -> Tensor:
    """Adversarial training (Madry et al. 2018, arXiv:1706.06083): cross-entropy at max over the linf ball."""
    worse = perturbed(
        module, x, lambda logits: F.cross_entropy(logits, y), generator, eps=eps, steps=steps, step_size=step_size
    )
    return F.cross_entropy(module(worse), y)
