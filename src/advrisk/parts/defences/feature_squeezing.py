"""Fewer bits for each value."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw
from advrisk.parts.defences.registry import Defence, defences
from advrisk.parts.defences.straight import Gradient, sloped
from advrisk.parts.detectors.feature_squeezing import fewer_bits

FLOAT32_BITS = 24  # of a value in float32


@defences.register(
    "feature-squeezing",
    traits=DefenceTraits(
        "perturbations of images are small noise that rounding removes",
        images=True,
        levels={"bits": (2, 4, 8, 16, 32, 64)},
    ),
)
@dataclass(frozen=True, kw_only=True)
class FeatureSqueezing(Defence):
    """Xu, Evans & Qi (2018), "Feature Squeezing": every value at the nearest of 2^bits levels between the bounds.

    Inputs are float32, which has 24 bits: from `bits: 24` on, the defence changes nothing.
    """

    bits: Annotated[int, Ge(1), Le(64)]
    gradient: Gradient = "straight"

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:  # noqa: ARG002
        if self.bits >= FLOAT32_BITS:
            return x
        return sloped(fewer_bits(x, self.bits, bounds), x, self.gradient)
