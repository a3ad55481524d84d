"""Columns of any table: a dict of arrays, an Arrow table, a pandas or a polars frame."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean

Floats = NDArray[np.float64]
Frame = Any  # a mapping of names to arrays, or anything with `__arrow_c_stream__` or with columns that become arrays
Columns = dict[str, NDArray[Any]]


def read_columns(frame: Frame, names: Iterable[str]) -> Columns:
    """The named columns, each of float64 numbers or of text, all of one length, without gaps."""
    wanted = list(dict.fromkeys(names))
    there = column_names(frame)
    if twice := [name for name in wanted if there.count(name) > 1]:
        raise RiskError(f"the frame has several columns called {twice[0]!r}; rename all but one")
    for name in wanted:
        if name not in there:
            raise RiskError(f"the frame has no column {name!r}; {did_you_mean(name, there)}")
    columns = {name: _checked(name, values) for name, values in _raw_columns(frame, wanted).items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise RiskError(f"the frame's columns differ in length: {found}")
    if not min(lengths.values(), default=1):
        raise RiskError("the frame has no rows; a survival fit needs some with an event")
    return columns


def column_names(frame: Frame) -> list[str]:
    """The names of a frame's columns."""
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if names is not None and not callable(names):
        return [str(name) for name in names]
    if hasattr(frame, "__arrow_c_stream__"):
        return list(_arrow(frame).column_names)
    raise RiskError(
        f"a frame is needed, found {type(frame).__name__}; give a dict of arrays, a pyarrow Table, "
        "or a pandas or polars frame"
    )


def numbers(columns: Columns, name: str, what: str) -> Floats:
    """A column that must be of finite numbers."""
    values = columns[name]
    if values.dtype.kind != "f":
        raise RiskError(f"column {name!r} ({what}) must be of numbers, found text such as {str(values[0])!r}")
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise RiskError(
            f"column {name!r} ({what}) holds {_how_many(wrong)} not a finite number, the first in row "
            f"{int(np.argmax(wrong))}: {values[wrong][0]}; leave these rows out"
        )
    return values


def _raw_columns(frame: Frame, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(frame, Mapping):
        by_name = {str(name): values for name, values in frame.items()}
        return {name: by_name[name] for name in names}
    if hasattr(frame, "__arrow_c_stream__"):
        table = _arrow(frame if not hasattr(frame, "__getitem__") or _is_arrow(frame) else frame[list(names)])
        return {name: _from_arrow(table.column(name)) for name in names}
    return {name: frame[name].to_numpy() if hasattr(frame[name], "to_numpy") else frame[name] for name in names}


def _is_arrow(frame: Frame) -> bool:
    return type(frame).__module__.partition(".")[0] == "pyarrow"


def _arrow(frame: Frame) -> Any:
    import pyarrow as pa

    try:
        return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise RiskError(f"the frame cannot be read as an Arrow table: {error}") from None


def _from_arrow(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8()) if not column.null_count else column
    return np.asarray(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy())


def _checked(name: str, values: Any) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise RiskError(f"column {name!r} is not an array of numbers or of text") from None
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # numbers among text would be taken for text
    if array.ndim != 1:
        raise RiskError(f"column {name!r} must have one dimension, found the shape {array.shape}")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind == "O":
        return _from_objects(name, array)
    raise RiskError(f"column {name!r} must be of numbers or of text, found {array.dtype}")


def _from_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Python objects: all text, or all numbers."""
    missing = np.array([one is None or one != one for one in array], dtype=bool)
    if missing.any():
        raise RiskError(
            f"column {name!r} has {_how_many(missing)} missing, the first in row {int(np.argmax(missing))}; "
            "leave these rows out, or fill them"
        )
    if all(isinstance(one, str) for one in array):
        return array.astype(np.str_)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({type(one).__name__ for one in array}))
        raise RiskError(f"column {name!r} must be of numbers or of text, found {kinds}") from None


def _how_many(wrong: NDArray[np.bool_]) -> str:
    n = int(wrong.sum())
    return "1 value that is" if n == 1 else f"{n} values that are"
