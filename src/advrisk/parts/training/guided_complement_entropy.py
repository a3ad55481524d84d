"""Guided complement entropy: make the incorrect classes equally unlikely."""

import math
from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Gt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.registry import training


@training.register(
    "guided-complement-entropy",
    traits=TrainingTraits("hardening must cost no more than plain training", classes=3),
)
def guided_complement_entropy(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,  # noqa: ARG001
    *,
    alpha: Annotated[float, Gt(0)] = 1 / 3,
) -> Tensor:
    """Guided complement entropy (Chen et al. 2019, arXiv:1903.09799): 1 + mean p_y^α Σ_{k≠y} q_k log q_k / log(K − 1).

    p is the softmax of K classes, q_k = p_k / (1 − p_y). The paper maximises −Σ q log q, guided by p_y^α; scaled and
    with this shift it is 0 where the label is certain and all other classes are equally likely, and at most 1.
    """
    logits = module(x)
    is_label = F.one_hot(y, logits.shape[1]).bool()
    guide = (alpha * F.log_softmax(logits, 1)[is_label]).exp()
    others = F.log_softmax(logits[~is_label].view(len(x), -1), 1)
    entropy = -(others.exp() * others).sum(1)
    return 1 - (guide * entropy).mean() / math.log(logits.shape[1] - 1)
