"""Parseval regularisation: layers that stretch no direction much more than another."""

from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Gt
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.core.traits import TrainingTraits
from advrisk.parts.training.registry import training

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@training.register("parseval", traits=TrainingTraits("layers should not amplify perturbations"))
def parseval(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,  # noqa: ARG001
    *,
    beta: Annotated[float, Gt(0)] = 0.01,
) -> Tensor:
    """Parseval networks (Cissé et al. 2017, arXiv:1704.08847), as a penalty: CE(f(x), y) + β/2 · Σ_W ‖W Wᵀ − I‖²_F.

    W is the weight of each linear and convolutional layer, one row for each output. This is the paper's regulariser
    as part of the loss; its retraction W ← (1 + β) W − β W Wᵀ W after each step, which approximates the descent on
    it, and its convex sums in residual blocks are not here.
    """
    return F.cross_entropy(module(x), y) + beta / 2 * departure(module)


def departure(module: nn.Module) -> Tensor:
    """The distance of a module's weights from tight frames: Σ ‖W Wᵀ − I‖²_F.

    Where W has more rows than columns, Wᵀ W is taken: the norm differs by a constant, the slope is the same.
    """
    weights = [layer.weight.flatten(1) for layer in module.modules() if isinstance(layer, LAYERS)]
    if not weights:
        raise ModelError("parseval regularises linear and convolutional layers, and this model has none")
    return torch.stack([_departure(weight) for weight in weights]).sum()


def _departure(weight: Tensor) -> Tensor:
    rows, columns = weight.shape
    gram = weight @ weight.T if rows <= columns else weight.T @ weight
    return (gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).square().sum()
