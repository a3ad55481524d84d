"""Each pixel becomes the median of those around it."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw
from advrisk.parts.defences.registry import Defence, defences
from advrisk.parts.detectors.feature_squeezing import median_filtered


@defences.register(
    "median-smoothing",
    traits=DefenceTraits("perturbations change few pixels by much", images=True, levels={"window": (2, 3)}),
)
@dataclass(frozen=True, kw_only=True)
class MedianSmoothing(Defence):
    """Xu, Evans & Qi (2018), "Feature Squeezing": the median of a square window, channel by channel.

    Images go on mirrored beyond their edges. Slopes are exact: they go to the pixel whose value the median took.
    """

    window: Annotated[int, Ge(2), Le(15)] = 3

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:  # noqa: ARG002
        return median_filtered(x, self.window)
