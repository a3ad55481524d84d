"""Noise on the inputs of every query."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt
from torch import Tensor

from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw
from advrisk.parts.defences.registry import Defence, defences


@defences.register(
    "gauss-at-input",
    traits=DefenceTraits(
        "the model bears noise (it was trained with it, say), and small perturbations should drown in it",
        random=True,
    ),
)
@dataclass(frozen=True, kw_only=True)
class GaussAtInput(Defence):
    """Normal noise on the input, of deviation sigma times the width of the bounds, clipped to the bounds.

    Slopes are those of the model at the noisy input.
    """

    sigma: Annotated[float, Gt(0)]

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:
        low, high = bounds
        noise = self.sigma * (high - low) * draw.normal(tuple(x.shape[1:])).to(x.dtype)
        moved = (x + noise).detach().clamp(low, high)
        return moved + (x - x.detach())
