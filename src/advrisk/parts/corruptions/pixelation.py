"""Pixelation: a picture of fewer pixels than it has."""

from typing import Annotated

import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.kernels import shorter_side
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "pixelation",
    traits=CorruptionTraits(
        "pictures were enlarged from fewer pixels: a far object, a cheap camera, a zoomed detail",
        cause="sensor",
        random=False,
        inputs="images",
        levels={"block_pct": (6.0, 9.0, 13.0, 17.0, 20.0)},
    ),
)
def pixelation(
    x: Tensor,
    noise: Noise,  # noqa: ARG001
    rows: Tensor,  # noqa: ARG001
    space: Space,  # noqa: ARG001
    *,
    block_pct: Annotated[float, Ge(0), Le(100)],
) -> Tensor:
    """Every pixel shows the mean of its block; not random.

    Blocks are squares from the top left, cut off at the right and the bottom. Their side is `block_pct` percent of the
    image's shorter side, rounded to whole pixels; blocks of one pixel change nothing.
    """
    side, (height, width) = max(1, round(block_pct / 100 * shorter_side(x))), x.shape[2:]
    means = F.avg_pool2d(x, side, ceil_mode=True, count_include_pad=False)
    return means.repeat_interleave(side, 2)[:, :, :height].repeat_interleave(side, 3)[:, :, :, :width]
