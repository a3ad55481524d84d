"""Inputs as images: what is black and what is white, and several beside each other in one PNG."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bounds = tuple[Array, Array]  # what is shown as black and as white: two numbers, or two for each feature

UNIT: Bounds = (np.array(0.0), np.array(1.0))
_GAP = 14  # of the width of an image, the share between two


def drawn(x: Array, bounds: Bounds = UNIT) -> Any:
    """An image (channels first) for Pillow: the low bound is black, the high one white."""
    from PIL import Image

    low, high = bounds
    span = np.where(high > low, high - low, 1.0)
    levels = np.clip(np.round((x - low) / span * 255), 0, 255).astype(np.uint8)
    return Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0))


def png(image: Any) -> bytes:
    """An image of Pillow as a PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def beside(images: Sequence[Any]) -> Any:
    """Images of one size in one, with nothing between them."""
    from PIL import Image

    width, height = images[0].size
    step = width + max(1, width // _GAP)
    joined = Image.new("RGBA", (step * len(images) - (step - width), height), (0, 0, 0, 0))
    for place, image in enumerate(images):
        joined.paste(image, (place * step, 0))
    return joined
