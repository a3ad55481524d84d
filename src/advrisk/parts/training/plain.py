"""Plain training: cross-entropy, nothing else."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.core.traits import SourceTraits
from advrisk.parts.training.registry import training


@training.register("plain", traits=SourceTraits("you need the baseline every other method is compared with"))
def plain(module: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the labels."""
    return F.cross_entropy(module(x), y)
