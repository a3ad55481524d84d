"""What an attack climbs: one number per row, larger is worse for the model."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

objectives: Registry[SourceTraits] = Registry("objectives")


@objectives.register("ace", traits=SourceTraits("the usual choice"))
def adversarial_cross_entropy(scores: Tensor, reference: Tensor) -> Tensor:
    """Cross-entropy of the reference class: −log q_y.

    `scores` are logits or log-probabilities, for both of which log-softmax is right. Written as
    log(1 + exp(lead of the others)), whose slope stays exact where the model is very sure: that of
    log-softmax is made of 1 − q_y, which rounds to zero from a lead of 17 on.
    """
    own = reference[:, None]
    others = scores.scatter(1, own, -torch.inf).logsumexp(1)
    return F.softplus(others - scores.gather(1, own).squeeze(1))


def value(name: str, scores: Tensor, reference: Tensor) -> Tensor:
    """The objective of that name, for each row.

    On the CPU in float64: torch's exp and log differ in the last bit between the body and the tail of a vector, so in
    float32 a row's slope would depend on its place in the batch.
    """
    exact = scores.double() if scores.device.type == "cpu" else scores
    result: Tensor = objectives.get(name).function(exact, reference)
    return result
