"""Pictures as they are shown: 8 bits, lossless, and their distance from the original as it is shown."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RunError

Levels = NDArray[np.uint8]
Array = NDArray[Any]


def levels(x: Array) -> Levels:
    """An input with values in [0, 1] in the 256 levels of a picture."""
    return np.clip(np.round(np.asarray(x, dtype=np.float64) * 255), 0, 255).astype(np.uint8)


def moved(original: Array, point: Array, factor: float) -> Levels:
    """original + factor x (point - original), within the bounds, as it is shown."""
    return levels(np.clip(original + factor * (np.asarray(point, dtype=np.float64) - original), 0, 1))


def size_between(shown: Levels, original: Levels, norm: str) -> float:
    """The distance between two pictures as they are shown, in the unit of the inputs."""
    steps = np.abs(shown.astype(np.int64) - original.astype(np.int64)).ravel()
    if norm == "linf":
        return float(steps.max() / 255)
    if norm == "l2":
        return float(np.sqrt((steps**2).sum()) / 255)
    if norm == "l1":
        return float(steps.sum() / 255)
    return float((steps != 0).sum())


def png(picture: Levels) -> bytes:
    """A picture (channels first) as a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def check_image(x: Array, where: str) -> None:
    """Only gray or coloured images with values in [0, 1] can be shown to people."""
    if x.ndim != 3 or x.shape[0] not in (1, 3):
        raise RunError(
            f"{where}: its inputs have the shape {tuple(x.shape)}, and only images (1 or 3 channels, height, width) "
            "can be shown to people; for other inputs fit a curve from a detector's answers (fit_bayesian)"
        )
    if not (float(x.min()) >= 0 and float(x.max()) <= 1):  # nan, too
        raise RunError(
            f"{where}: its inputs lie in [{float(x.min()):g}, {float(x.max()):g}], and a picture is made of values in "
            "[0, 1]; run the study on inputs in [0, 1], with the normalisation inside the model"
        )
