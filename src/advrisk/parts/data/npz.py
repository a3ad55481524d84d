"""Samples from a numpy archive, without pickle."""

import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from advrisk.core.archives import ArchiveError, Array, read_archive
from advrisk.core.errors import DataError
from advrisk.core.names import did_you_mean
from advrisk.core.traits import SourceTraits
from advrisk.parts.data.dataset import FEATURE_MASKS, Dataset
from advrisk.parts.data.registry import data

Layout = Literal["auto", "nchw", "nhwc", "tabular"]
MAX_BYTES = 32 * 2**30


@data.register("npz", traits=SourceTraits("you have samples of your own: x, y, and any further columns"))
def npz(
    *,
    path: Path,
    strata: tuple[str, ...] = (),
    layout: Layout = "auto",
    bounds: tuple[float, ...] | None = None,
    classes: Annotated[int, Ge(2)] | None = None,
) -> Dataset:
    """An .npz file with `x` (uint8 images, or floats), `y` (class numbers) and optional columns.

    Optional, one entry per sample: `id`, `weight`, `split`, and every name in `strata`. Optional, one
    entry per feature: `low`, `high`, `scale`, `immutable`, `integer`, `category`, `feature_names`. Optional, one
    entry per class: `class_names`. Floats need `bounds` or `low` and `high`. uint8 becomes [0, 1].
    """
    arrays = read_arrays(path)
    for name in ("x", "y", *strata):
        if name not in arrays:
            raise DataError(f"{path}: has no array {name!r}; {did_you_mean(name, arrays)}")
    _check_columns(arrays, ("id", "weight", "split", *strata), path)
    y = _labels(arrays["y"], path)
    low, high = _bounds(arrays, bounds, path)
    class_names = _names(arrays, "class_names", path)
    return Dataset(
        name=path.stem,
        x=_inputs(arrays["x"], layout, path),
        y=y,
        n_classes=classes or len(class_names) or int(y.max(initial=0)) + 1,
        ids=tuple(map(str, arrays["id"])) if "id" in arrays else (),
        low=low,
        high=high,
        scale=arrays.get("scale", 1.0),
        masks={name: arrays[name].astype(bool) for name in FEATURE_MASKS if name in arrays},
        weights=_weights(arrays["weight"], path) if "weight" in arrays else None,
        strata={name: arrays[name].astype(str) for name in strata},
        split=arrays["split"].astype(str) if "split" in arrays else None,
        class_names=class_names,
        feature_names=_names(arrays, "feature_names", path),
    )


def read_arrays(path: Path) -> dict[str, Array]:
    """Every array of an .npz file; DataError if it cannot be read."""
    try:
        return read_archive(path, max_bytes=MAX_BYTES)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except ArchiveError as error:
        raise DataError(f"{path}: {error}") from None


def _check_columns(arrays: dict[str, Array], per_sample: tuple[str, ...], path: Path) -> None:
    for name in per_sample:
        if name in arrays and arrays[name].ndim != 1:
            raise DataError(f"{path}: {name} must have one entry per sample, found shape {arrays[name].shape}")
    for name in ("low", "high", "scale"):
        if name in arrays and not np.issubdtype(arrays[name].dtype, np.number):
            raise DataError(f"{path}: {name} must hold numbers, found {arrays[name].dtype}")
    for name in FEATURE_MASKS:
        if name in arrays and arrays[name].dtype.kind not in "biu":
            raise DataError(f"{path}: {name} must hold true and false, found {arrays[name].dtype}")


def _names(arrays: dict[str, Array], name: str, path: Path) -> tuple[str, ...]:
    found = arrays.get(name, np.empty(0, str))
    if found.ndim != 1 or found.dtype.kind != "U":
        raise DataError(f"{path}: {name} must be a list of strings, found {found.dtype} of shape {found.shape}")
    return tuple(map(str, found))


def _inputs(x: Array, layout: Layout, path: Path) -> npt.NDArray[np.float32]:
    if x.dtype != np.uint8 and not np.issubdtype(x.dtype, np.floating) and not np.issubdtype(x.dtype, np.integer):
        raise DataError(f"{path}: x must hold real numbers, found {x.dtype}")
    values = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x.astype(np.float32)
    if values.ndim == 2 or (layout == "tabular" and values.ndim > 2):
        return values.reshape(len(values), math.prod(values.shape[1:]))
    if values.ndim == 3:
        return values[:, None]
    if values.ndim != 4:
        raise DataError(f"{path}: x must be N×D, N×H×W, N×H×W×C or N×C×H×W, found shape {x.shape}")
    if layout == "auto":
        layout = _guess_layout(x.shape, path)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2)) if layout == "nhwc" else values


def _guess_layout(shape: tuple[int, ...], path: Path) -> Literal["nchw", "nhwc"]:
    channels_last, channels_first = shape[3] in (1, 3), shape[1] in (1, 3)
    if channels_last == channels_first:
        raise DataError(f"{path}: x has shape {shape}; write `layout: nhwc` or `layout: nchw`")
    return "nhwc" if channels_last else "nchw"


def _weights(weights: Array, path: Path) -> npt.NDArray[np.float64]:
    if not np.issubdtype(weights.dtype, np.floating) and not np.issubdtype(weights.dtype, np.integer):
        raise DataError(f"{path}: weight must be numbers, found {weights.dtype}")
    return weights.astype(np.float64)


def _labels(y: Array, path: Path) -> npt.NDArray[np.int64]:
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
        raise DataError(f"{path}: y must be one class number per sample, found {y.dtype} of shape {y.shape}")
    return y.astype(np.int64)


def _bounds(
    arrays: dict[str, Array], bounds: tuple[float, ...] | None, path: Path
) -> tuple[Array | float, Array | float]:
    if bounds is not None:
        if len(bounds) != 2 or not bounds[0] < bounds[1]:
            raise DataError(f"{path}: bounds must be [low, high] with low < high, found {list(bounds)}")
        if arrays["x"].dtype == np.uint8 and bounds != (0.0, 1.0):
            raise DataError(f"{path}: uint8 becomes [0, 1], so bounds {list(bounds)} cannot hold; leave them out")
        return bounds[0], bounds[1]
    if "low" in arrays and "high" in arrays:
        if arrays["x"].dtype == np.uint8 and (np.any(arrays["low"] < 0) or np.any(arrays["high"] > 1)):
            raise DataError(f"{path}: uint8 becomes [0, 1], so low and high must lie within it")
        return arrays["low"], arrays["high"]
    if arrays["x"].dtype == np.uint8:
        return 0.0, 1.0
    raise DataError(f"{path}: x is {arrays['x'].dtype} without bounds; write them, such as `bounds: [0, 1]`")
