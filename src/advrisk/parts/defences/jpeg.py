"""Inputs that go through JPEG before the model sees them."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw, Space
from advrisk.parts.corruptions.jpeg import through_jpeg
from advrisk.parts.defences.registry import Defence, defences
from advrisk.parts.defences.straight import Gradient, sloped


@defences.register(
    "jpeg",
    traits=DefenceTraits(
        "pictures are stored or sent as JPEG anyway, which takes away what the eye would not see",
        images=True,
    ),
)
@dataclass(frozen=True, kw_only=True)
class Jpeg(Defence):
    """Dziugaite, Ghahramani & Roy (2016, arXiv:1608.00853): rounded to 8 bits, encoded as JPEG, and decoded.

    As the corruption of that name does it, by Pillow.
    """

    quality: Annotated[int, Ge(1), Le(100)] = 75
    gradient: Gradient = "straight"

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:  # noqa: ARG002
        return sloped(through_jpeg(x.detach(), Space.box(*bounds).to(x.device), self.quality), x, self.gradient)
