"""The inner maximisation of adversarial training: a few linf steps on the current weights."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def perturbed(
    module: nn.Module,
    x: Tensor,
    loss: Callable[[Tensor], Tensor],
    generator: torch.Generator,
    *,
    eps: float,
    steps: int,
    step_size: float | None,
) -> Tensor:
    """Inputs within eps (linf) and [0, 1] that raise a loss of the logits, from a random start."""
    step = 2.5 * eps / steps if step_size is None else step_size
    worse = (x + eps * (2 * torch.rand(x.shape, generator=generator) - 1)).clamp(0, 1)
    for _ in range(steps):
        worse.requires_grad_(True)
        (slope,) = torch.autograd.grad(loss(module(worse)), worse)
        worse = torch.clamp(worse.detach() + step * slope.sign(), x - eps, x + eps).clamp(0, 1)
    return worse
