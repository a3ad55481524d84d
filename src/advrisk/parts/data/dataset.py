"""Samples as arrays, checked: what every data source returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from advrisk.core.digest import digest_array
from advrisk.core.errors import DataError
from advrisk.core.names import counted

Array = npt.NDArray[Any]
FEATURE_MASKS = ("immutable", "integer", "category")


@dataclass(frozen=True)
class Dataset:
    """Inputs (float32, samples first; images channels first) with their labels, bounds and columns.

    `low`, `high` and `scale` are numbers or arrays of an input's shape, `masks` may hold `immutable`,
    `integer` and `category`. `split` is given where the source has splits of its own,
    names of classes and features where it states them: pages show these in place of numbers.
    """

    name: str
    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    n_classes: int
    ids: tuple[str, ...] = ()
    low: Array | float = 0.0
    high: Array | float = 1.0
    scale: Array | float = 1.0
    masks: Mapping[str, Array] = field(default_factory=dict)
    weights: npt.NDArray[np.float64] | None = None
    strata: Mapping[str, Array] = field(default_factory=dict)
    split: Array | None = None
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, "ids", tuple(f"{self.name}/{number:06d}" for number in range(len(self.x))))
        _check_sizes(self)
        _check_values(self)

    def subset(self, rows: Sequence[int]) -> "Dataset":
        """The samples in these rows, with all their columns."""
        chosen = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            x=self.x[chosen],
            y=self.y[chosen],
            ids=tuple(self.ids[row] for row in rows),
            weights=None if self.weights is None else self.weights[chosen],
            strata={name: column[chosen] for name, column in self.strata.items()},
            split=None if self.split is None else self.split[chosen],
        )

    def hash_of(self, index: int) -> str:
        """The content hash of one sample: its input and its label."""
        return digest_array(self.x[index])[:24] + f"{int(self.y[index]):08x}"


def _check_sizes(data: Dataset) -> None:
    if len(data.x) == 0:
        raise DataError(f"{data.name}: found no samples")
    columns: dict[str, Any] = {"y": data.y, "ids": data.ids, **data.strata}
    columns |= {"weights": data.weights} if data.weights is not None else {}
    columns |= {"split": data.split} if data.split is not None else {}
    for name, column in columns.items():
        if len(column) != len(data.x):
            raise DataError(f"{data.name}: {len(data.x)} inputs but {len(column)} entries in {name!r}")
    if len(set(data.ids)) < len(data.ids):
        earlier: set[str] = set()
        twice = next(one for one in data.ids if one in earlier or earlier.add(one))  # type: ignore[func-returns-value]
        raise DataError(f"{data.name}: two samples have the id {twice!r}; ids must differ")
    for name in ("low", "high", "scale"):
        shape = np.shape(getattr(data, name))
        if shape not in ((), data.x.shape[1:]):
            raise DataError(
                f"{data.name}: {name} must be one number or an array of shape {data.x.shape[1:]}, found {shape}"
            )
    for name, mask in data.masks.items():
        if name not in FEATURE_MASKS or mask.shape != data.x.shape[1:]:
            raise DataError(f"{data.name}: {name!r} must be a mask of shape {data.x.shape[1:]}, found {mask.shape}")


def _check_values(data: Dataset) -> None:
    if not (np.isfinite(data.low).all() and np.isfinite(data.high).all()):
        raise DataError(f"{data.name}: bounds must be finite numbers in every feature")
    _refuse(data, ~np.isfinite(data.x), "is not finite")
    low, high = (np.broadcast_to(np.float32(bound), data.x.shape[1:]) for bound in (data.low, data.high))
    _refuse(data, data.x < low, "lies below the bound", low)
    _refuse(data, data.x > high, "lies above the bound", high)
    for name in ("integer", "category"):
        if name in data.masks:
            _refuse(data, data.masks[name] & (data.x != np.round(data.x)), f"is {name} but not a whole number")
    _check_names(data.name, "class_names", data.class_names, data.n_classes)
    _check_names(data.name, "feature_names", data.feature_names, int(np.prod(data.x.shape[1:])))
    outside = np.flatnonzero((data.y < 0) | (data.y >= data.n_classes))
    if len(outside):
        first = int(outside[0])
        raise DataError(
            f"{data.name}: sample {data.ids[first]} has label {data.y[first]}, outside the {data.n_classes} classes "
            f"0 to {data.n_classes - 1} ({counted(len(outside), 'such sample')})"
        )
    if data.weights is not None and not (np.isfinite(data.weights).all() and (data.weights > 0).all()):
        raise DataError(f"{data.name}: weights must be positive numbers")
    if not (np.isfinite(data.scale).all() and np.all(np.asarray(data.scale) > 0)):
        raise DataError(f"{data.name}: scale must be positive in every feature")


def _check_names(data: str, field: str, names: Sequence[str], needed: int) -> None:
    if names and len(names) != needed:
        raise DataError(f"{data}: {field} has {len(names)} names, {needed} are needed")


def _refuse(data: Dataset, wrong: Array, what: str, bound: Array | None = None) -> None:
    if wrong.any():
        index = np.unravel_index(int(wrong.argmax()), wrong.shape)
        feature = tuple(int(i) for i in index[1:])
        limit = "" if bound is None else f" {bound[index[1:]]:g}"
        raise DataError(
            f"{data.name}: sample {data.ids[int(index[0])]}, feature {feature} = {data.x[index]:g} {what}{limit} "
            f"({counted(int(wrong.any(axis=tuple(range(1, wrong.ndim))).sum()), 'such sample')})"
        )
