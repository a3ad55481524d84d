"""TRADES: trade accuracy against stability of the prediction."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.inner import as_deployed, perturbed
from advrisk.parts.training.registry import training


@training.register(
    "trades",
    traits=TrainingTraits("hardening should keep more clean accuracy; beta sets the trade", perturbs=True),
    version=2,
)
def trades(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    eps: Annotated[float, Gt(0)],
    steps: Annotated[int, Ge(1)] = 10,
    step_size: Annotated[float, Gt(0)] | None = None,
    beta: Annotated[float, Gt(0)] = 6.0,
) -> Tensor:
    """TRADES (Zhang et al. 2019, arXiv:1901.08573): CE(f(x), y) + β · max KL(f(x) ‖ f(x'))."""
    with torch.no_grad(), as_deployed(module):
        calm = F.log_softmax(module(x), 1)

    def unrest(logits: Tensor) -> Tensor:
        return F.kl_div(F.log_softmax(logits, 1), calm, log_target=True, reduction="batchmean")

    worse = perturbed(module, x, unrest, generator, eps=eps, steps=steps, step_size=step_size)
    logits = module(x)
    divergence = F.kl_div(
        F.log_softmax(module(worse), 1), F.log_softmax(logits, 1), log_target=True, reduction="batchmean"
    )
    return F.cross_entropy(logits, y) + beta * divergence
