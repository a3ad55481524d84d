"""The inner maximisation of adversarial training: a few linf steps on the current weights."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F  # noqa: N812
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
    random_start: bool = True,
) -> Tensor:
    """Inputs within eps (linf) and [0, 1] that raise a loss of the logits, from a random start or from x."""
    step = 2.5 * eps / steps if step_size is None else step_size
    worse = x.detach()
    if random_start:
        worse = (x + eps * (2 * torch.rand(x.shape, generator=generator) - 1)).clamp(0, 1)
    with as_deployed(module):
        for _ in range(steps):
            worse = worse.detach().requires_grad_(True)
            (slope,) = torch.autograd.grad(loss(module(worse)), worse)
            worse = torch.clamp(worse.detach() + step * slope.sign(), x - eps, x + eps).clamp(0, 1)
    return worse


@contextmanager
def as_deployed(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode: no dropout, and its batch normalisation learns nothing from attacks."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)


def weighed_loss(module: nn.Module, x: Tensor, worse: Tensor, y: Tensor, *, clean: float) -> Tensor:
    """clean · CE(f(x), y) + (1 − clean) · CE(f(worse), y), in one pass: batch normalisation uses both together."""
    if clean == 0:
        return F.cross_entropy(module(worse), y)
    on_clean, on_worse = F.cross_entropy(module(torch.cat([x, worse])), y.repeat(2), reduction="none").chunk(2)
    return clean * on_clean.mean() + (1 - clean) * on_worse.mean()
