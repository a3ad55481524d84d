"""What an attack climbs: one number per row, larger is worse for the model."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

objectives: Registry[SourceTraits] = Registry("objectives")


@objectives.register("ace", traits=SourceTraits("the usual choice"))
def adversarial_cross_entropy(scores: Tensor, reference: Tensor) -> Tensor:
    """Cross-entropy of the reference class: −log q_y.

    `scores` are logits or log-probabilities, for both of which log-softmax is right.
    """
    return F.cross_entropy(scores, reference, reduction="none")


def value(name: str, scores: Tensor, reference: Tensor) -> Tensor:
    """The objective of that name, for each row."""
    result: Tensor = objectives.get(name).function(scores, reference)
    return result
