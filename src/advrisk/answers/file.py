"""A detector's answers from a CSV or Parquet file: of which size each perturbation was, and whether it was noticed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advrisk.core.errors import LedgerError
from advrisk.core.names import did_you_mean
from advrisk.ledger.exchange.source import read_table

_NEEDED = ("size", "undetected")
_GROUPS = ("model", "arm", "labeller", "image")
_FLAGS = {True: True, False: False, "true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


@dataclass(frozen=True)
class AnswerRows:
    """One entry per answer; a group is None where the file does not name it."""

    sizes: tuple[float, ...]
    undetected: tuple[bool, ...]
    model: tuple[str, ...] | None = None
    arm: tuple[str, ...] | None = None
    labeller: tuple[str, ...] | None = None
    image: tuple[str, ...] | None = None


def read_answer_file(source: Path) -> AnswerRows:
    """Needed: `size` and `undetected` (true or false, 1 or 0). Optional: model, arm, labeller, image."""
    table = read_table(source, text=_GROUPS)
    for name in table.column_names:
        if name not in _NEEDED + _GROUPS:
            raise LedgerError(f"{source}: unknown column {name!r}; {did_you_mean(name, _NEEDED + _GROUPS)}")
    for name in _NEEDED:
        if name not in table.column_names:
            raise LedgerError(f"{source}: the column {name!r} is missing")
    rows = table.to_pylist()
    if not rows:
        raise LedgerError(f"{source}: holds no row")
    places = [f"{source}, row {number}" for number in range(1, len(rows) + 1)]
    groups = {
        name: tuple(_name(row[name], name, place) for row, place in zip(rows, places, strict=True))
        for name in _GROUPS
        if name in table.column_names
    }
    return AnswerRows(
        sizes=tuple(_size(row["size"], place) for row, place in zip(rows, places, strict=True)),
        undetected=tuple(_flag(row["undetected"], place) for row, place in zip(rows, places, strict=True)),
        **groups,
    )


def _size(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise LedgerError(f"{place}: size must be a number of at least 0, found {value!r}")
    return float(value)


def _flag(value: Any, place: str) -> bool:
    known = value.lower() if isinstance(value, str) else value
    if known not in _FLAGS:
        raise LedgerError(f"{place}: undetected must be true or false (1 or 0), found {value!r}")
    return _FLAGS[known]


def _name(value: Any, column: str, place: str) -> str:
    if value in (None, ""):
        raise LedgerError(f"{place}: {column} is empty")
    return str(value)
