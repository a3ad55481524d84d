"""Refusing to answer where the model is unsure."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import DefenceTraits
from advrisk.parts.defences.registry import Defence, defences


@defences.register(
    "conf",
    traits=DefenceTraits(
        "a refusal is acceptable: it refuses attacks that end near a boundary, and some clean inputs",
        needs="scores",
        rejects=True,
        levels={"threshold": (0.1, 0.5, 0.9, 0.99, 0.999)},
    ),
)
@dataclass(frozen=True, kw_only=True)
class Confidence(Defence):
    """Reject where the largest probability, max softmax(z), is below the threshold.

    With K classes it is never below 1/K: a threshold up to that refuses nothing.
    """

    threshold: Annotated[float, Ge(0), Le(1)]

    def rejects(self, answer: Tensor) -> Tensor:
        return answer.detach().double().softmax(1).amax(1) < self.threshold
