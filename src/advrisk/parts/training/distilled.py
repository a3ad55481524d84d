"""Defensive distillation: learn a teacher's probability of each class."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Gt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.registry import Frozen, training


@training.register("distilled", traits=TrainingTraits("you want to see what smoother labels are worth"))
def distilled(
    module: nn.Module,
    x: Tensor,
    y: Tensor,  # noqa: ARG001
    generator: torch.Generator,  # noqa: ARG001
    *,
    teacher: Frozen,
    temperature: Annotated[float, Gt(0)],
) -> Tensor:
    """Defensive distillation (Papernot et al. 2016, arXiv:1511.04508): −Σ_k softmax(g(x)/T)_k · log softmax(f(x)/T)_k.

    g is the `teacher`, T the `temperature`. The paper's teacher is trained at the same temperature first (`plain` with
    `temperature`); the model is used at T = 1, with logits as they are.
    """
    with torch.no_grad():
        soft = F.softmax(teacher(x) / temperature, 1)
    return F.cross_entropy(module(x) / temperature, soft)
