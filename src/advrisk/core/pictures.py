"""Inputs as small pictures: gray or coloured, channels first."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bounds = tuple[Array, Array]  # what is shown as black and as white: two numbers, or two for each feature

UNIT: Bounds = (np.array(0.0), np.array(1.0))


def is_image(x: Array) -> bool:
    """Gray or coloured, channels first."""
    return x.ndim == 3 and x.shape[0] in (1, 3) and min(x.shape[1:]) > 1


def png(x: Array, bounds: Bounds = UNIT) -> bytes:
    """An image as the bytes of a PNG file: the low bound is black, the high one white."""
    from PIL import Image

    low, high = bounds
    span = np.where(high > low, high - low, 1.0)
    levels = np.clip(np.round((x - low) / span * 255), 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0)).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
