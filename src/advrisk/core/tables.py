"""Results as tables: rows of plain values, whose columns have types even where there is no row."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from advrisk.core.errors import RunError
from advrisk.core.plain import plain_fields

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

ColumnType = Literal["text", "number", "count", "flag"]
Columns = Mapping[str, ColumnType]
Row = dict[str, Any]

# What every estimate is told by.
ESTIMATE: Columns = {
    "value": "number",
    "low": "number",
    "high": "number",
    "level": "number",
    "n": "count",
    "method": "text",
}


class Tabular:
    """A result that is a table, too. A subclass says its `columns` and its `rows`, and gets the rest."""

    __slots__ = ()
    columns: ClassVar[Columns] = {}

    def rows(self) -> list[Row]:
        """Every number as a row of plain values; the keys are those of `columns`."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return plain_fields(self)

    def to_arrow(self) -> "pa.Table":
        """`rows()` as an Arrow table."""
        return arrow_table(self.rows(), self.columns)

    def to_pandas(self) -> "pd.DataFrame":
        """`rows()` as a pandas DataFrame."""
        return pandas_frame(self.rows(), self.columns)

    def to_polars(self) -> "pl.DataFrame":
        """`rows()` as a polars DataFrame."""
        return polars_frame(self.rows(), self.columns)

    def __str__(self) -> str:
        # by name: what shows a result stands above it, and `print` asks the result itself
        return str(import_module("advrisk.report.notebook").terminal_text(self))

    def _repr_html_(self) -> str:
        return str(import_module("advrisk.report.notebook").notebook_html(self))


def arrow_table(rows: Sequence[Mapping[str, Any]], columns: Columns) -> "pa.Table":
    """Rows as an Arrow table; what a row does not tell is null."""
    import pyarrow as pa

    types = {"text": pa.string(), "number": pa.float64(), "count": pa.int64(), "flag": pa.bool_()}
    arrays = [pa.array([row.get(name) for row in rows], types[kind]) for name, kind in columns.items()]
    return pa.table(arrays, names=list(columns))


def pandas_frame(rows: Sequence[Mapping[str, Any]], columns: Columns) -> "pd.DataFrame":
    """Rows as a pandas DataFrame; a missing number is NaN, counts and flags have types that know what is missing."""
    try:
        import pandas as pd
    except ImportError:
        raise _missing("pandas") from None
    import pyarrow as pa

    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
    return arrow_table(rows, columns).to_pandas(types_mapper=types.get)


def polars_frame(rows: Sequence[Mapping[str, Any]], columns: Columns) -> "pl.DataFrame":
    """Rows as a polars DataFrame."""
    try:
        import polars as pl
    except ImportError:
        raise _missing("polars") from None
    return pl.DataFrame(arrow_table(rows, columns))


def _missing(package: str) -> RunError:
    return RunError(f"{package} is not installed; install it with `pip install {package}`")
