"""Plain training: cross-entropy, nothing else."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Gt
from torch import Tensor, nn

from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.registry import training


@training.register("plain", traits=TrainingTraits("you need the baseline every other method is compared with"))
def plain(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,  # noqa: ARG001
    *,
    temperature: Annotated[float, Gt(0)] = 1.0,
) -> Tensor:
    """Cross-entropy of the labels: −log softmax(f(x)/T)_y, where a temperature T other than 1 makes teachers."""
    return F.cross_entropy(module(x) / temperature, y)
