"""Ensemble adversarial training: FGSM steps taken on several models in turn."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt, Lt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.inner import perturbed, weighed_loss
from advrisk.parts.training.registry import Frozen, training


@training.register(
    "ensemble-fgsm", traits=TrainingTraits("attacks may be transferred from models of others", perturbs=True)
)
def ensemble_fgsm(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    eps: Annotated[float, Gt(0)],
    sources: tuple[Frozen, ...],
    clean: Annotated[float, Ge(0), Lt(1)] = 0.5,
) -> Tensor:
    """Ensemble adversarial training (Tramèr et al. 2018, arXiv:1705.07204): c·CE(f(x), y) + (1 − c)·CE(f(x'), y).

    x' = x + ε·sign ∇CE(g(x), y), where g is drawn for each batch, with equal chances, from the `sources`, which stay
    as they are, and f itself; c is `clean`.
    """
    candidates = (module, *sources)
    drawn = int(torch.randint(len(candidates), (), generator=generator))
    worse = perturbed(
        *(candidates[drawn], x, lambda logits: F.cross_entropy(logits, y), generator),
        eps=eps,
        steps=1,
        step_size=eps,
        random_start=False,
    )
    return weighed_loss(module, x, worse, y, clean=clean)
