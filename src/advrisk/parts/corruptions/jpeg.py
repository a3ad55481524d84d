"""JPEG: pictures are squeezed before they are sent or stored."""

from io import BytesIO
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.light import from_light, light
from advrisk.parts.corruptions.registry import corruptions

Bytes = npt.NDArray[np.uint8]


@corruptions.register(
    "jpeg",
    traits=CorruptionTraits(
        "pictures were stored or sent as JPEG",
        cause="sensor",
        random=False,
        inputs="images",
        levels={"quality": (50, 30, 20, 12, 6)},
    ),
)
def jpeg(
    x: Tensor,
    noise: Noise,  # noqa: ARG001
    rows: Tensor,  # noqa: ARG001
    space: Space,
    *,
    quality: Annotated[int, Ge(1), Le(100)],
) -> Tensor:
    """Rounded to 8 bits between the bounds, encoded as JPEG of that quality by Pillow, and decoded; not random.

    Three channels are taken for red, green and blue, whose colours JPEG stores at half the resolution (4:2:0); with any
    other number each channel is a gray picture of its own. Quality 100 still rounds: no quality changes nothing.
    """
    return through_jpeg(x, space, quality)


def through_jpeg(x: Tensor, space: Space, quality: int) -> Tensor:
    """Images in the bounds of the space, stored as JPEG and read again."""
    stored = (light(x, space).clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()
    decoded = [_decoded(image, quality) for image in stored]
    kept = torch.from_numpy(np.array(decoded, dtype=np.uint8).reshape(stored.shape)).to(x.device, x.dtype)
    return from_light(kept / 255, space)


def _decoded(image: Bytes, quality: int) -> Bytes:
    """One image, channels first."""
    if len(image) == 3:
        return _through_pillow(image.transpose(1, 2, 0), quality).transpose(2, 0, 1)
    return np.stack([_through_pillow(channel, quality) for channel in image])


def _through_pillow(picture: Bytes, quality: int) -> Bytes:
    from PIL import Image

    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))
