"""Sections for machines: tables as rows of plain values, and as Arrow tables for CSV files."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advrisk.core.estimate import Estimate
from advrisk.core.sections import Cell, Column, Plain, Section, Table, Value, every
from advrisk.core.tables import Columns, ColumnType, Row, arrow_table

if TYPE_CHECKING:
    import pyarrow as pa

_ENDS = ("low", "high")  # of an interval: columns of their own


def table_columns(table: Table) -> Columns:
    """The columns for machines; each that holds an estimate is followed by the ends of its interval."""
    types: dict[str, ColumnType] = {}
    for place, column in enumerate(table.columns):
        types[column.key] = _type(column, [_bare(row[place]) for row in table.rows])
        if _estimated(table, place):
            types |= {f"{column.key}_{end}": "number" for end in _ENDS}
    return types


def table_rows(table: Table) -> list[Row]:
    """Every row as plain values, with the keys of `table_columns`."""
    return [dict(_cells(table, row)) for row in table.rows]


def tables_record(sections: Sequence[Section]) -> dict[str, list[Row]]:
    """The rows of every table, by its name."""
    return {one.key: table_rows(one) for one in every(sections) if isinstance(one, Table)}


def arrow_tables(name: str, sections: Sequence[Section]) -> "Mapping[str, pa.Table]":
    """Each table as an Arrow table: the first by the name of its question, others with their own behind it."""
    tables = [one for one in every(sections) if isinstance(one, Table)]
    return {
        name if place == 0 else f"{name}_{one.key}": arrow_table(table_rows(one), table_columns(one))
        for place, one in enumerate(tables)
    }


def _cells(table: Table, row: Sequence[Value]) -> Iterator[tuple[str, Any]]:
    for place, (column, held) in enumerate(zip(table.columns, row, strict=True)):
        value = _bare(held)
        estimate = value if isinstance(value, Estimate) else None
        yield column.key, _plain(estimate.value if estimate else value, column)
        if _estimated(table, place):
            for end in _ENDS:
                yield f"{column.key}_{end}", None if estimate is None else getattr(estimate, end)


def _estimated(table: Table, place: int) -> bool:
    return any(isinstance(_bare(row[place]), Estimate) for row in table.rows)


def _bare(value: Value) -> Plain:
    """A value without what is shown below it."""
    return value.value if isinstance(value, Cell) else value


def _plain(value: Plain, column: Column) -> Any:
    """What a file holds: a word in place of a number, such as `not reached`, is for people, and null there."""
    if isinstance(value, str) and column.kind != "text":
        return None
    if column.kind == "flag" and value is not None:
        return bool(value)
    if column.kind == "count" and isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value) if column.kind == "text" and value is not None else value


def _type(column: Column, values: Sequence[Plain]) -> ColumnType:
    if column.kind in ("text", "flag"):
        return column.kind
    return "count" if column.kind == "count" and not any(map(_is_fraction, values)) else "number"


def _is_fraction(value: Plain) -> bool:
    return isinstance(value, Estimate) or (isinstance(value, float) and not value.is_integer())
