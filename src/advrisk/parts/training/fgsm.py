"""FGSM training: learn on clean inputs and on one step of the sign of the gradient."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt, Lt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.inner import perturbed, weighed_loss
from advrisk.parts.training.registry import training


@training.register("fgsm", traits=TrainingTraits("hardening against linf attacks must be cheap", perturbs=True))
def fgsm(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    eps: Annotated[float, Gt(0)],
    clean: Annotated[float, Ge(0), Lt(1)] = 0.5,
    random_start: bool = False,
) -> Tensor:
    """FGSM training (Goodfellow et al. 2015, arXiv:1412.6572): c·CE(f(x), y) + (1 − c)·CE(f(x + ε·sign ∇CE), y).

    c is `clean`. With `random_start` the step begins at a random point of the linf ball and is 1.25 ε long, cut off
    at the ball's edge (Wong et al. 2020, arXiv:2001.03994, who take c = 0).
    """
    worse = perturbed(
        *(module, x, lambda logits: F.cross_entropy(logits, y), generator),
        eps=eps,
        steps=1,
        step_size=1.25 * eps if random_start else eps,
        random_start=random_start,
    )
    return weighed_loss(module, x, worse, y, clean=clean)
