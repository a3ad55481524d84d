"""Noise on the model's outputs."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Gt
from torch import Tensor

from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw
from advrisk.parts.defences.registry import Defence, defences

_LEAST = 1e-12  # the probability of classes that the noise made impossible


@defences.register(
    "gauss-out",
    traits=DefenceTraits(
        "the attacker asks for scores: noise on them blurs small differences",
        needs="scores",
        random=True,
        levels={"sigma": (0.001, 0.01, 0.1, 0.3, 0.5, 1.0)},
    ),
)
@dataclass(frozen=True, kw_only=True)
class GaussOut(Defence):
    """Normal noise of deviation sigma on the probabilities, or on the logits.

    p' = max(p + σ n, 0) / Σ max(p + σ n, 0); the answer is log p'. Where the sum is 0, the class with the largest
    p + σ n gets probability 1. So the class is always argmax(p + σ n).
    """

    sigma: Annotated[float, Gt(0)]
    noise_on: Literal["probabilities", "logits"] = "probabilities"

    def outputs(self, answer: Tensor, draw: Draw) -> Tensor:
        noise = self.sigma * draw.normal(tuple(answer.shape[1:])).double()
        exact = answer.double()  # in float32, exp and log depend on a row's position in the batch
        noisy = exact + noise if self.noise_on == "logits" else _logarithms(exact.softmax(1) + noise)
        return noisy.to(answer.dtype)


def _logarithms(noisy: Tensor) -> Tensor:
    left = noisy.clamp_min(0)
    total = left.sum(1, keepdim=True)
    only = F.one_hot(noisy.argmax(1), noisy.shape[1]).to(noisy.dtype)
    p = torch.where(total > 0, left / total.clamp_min(_LEAST), only)
    return p.clamp_min(_LEAST).log()
