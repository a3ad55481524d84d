"""Contrast: a flat picture, as stray light in a lens makes it."""

from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "contrast",
    traits=CorruptionTraits(
        "stray light, a dirty lens or a poor converter make pictures flat",
        cause="sensor",
        random=False,
        inputs="images",
        levels={"lost": (0.3, 0.5, 0.65, 0.8, 0.9)},
    ),
)
def contrast(
    x: Tensor,
    noise: Noise,  # noqa: ARG001
    rows: Tensor,  # noqa: ARG001
    space: Space,  # noqa: ARG001
    *,
    lost: Annotated[float, Ge(0), Le(1)],
) -> Tensor:
    """A share of the contrast is lost: x + lost·(m − x), with m the mean of each channel of the image; not random."""
    mean = x.double().mean((2, 3), keepdim=True).to(x.dtype)  # in double, so that rounding does not depend on the batch
    return x + lost * (mean - x)
