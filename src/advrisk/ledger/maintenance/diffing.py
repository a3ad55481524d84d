"""In what two ledgers differ, as readers see them: by name, whatever the order and the segments of their rows.

Rows are compared in two steps: a digest of all rows of a model, arm and repeat, and, only where those differ, the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from advrisk.core.plain import InJson
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.tables import TABLES

# Columns that say when, how fast and by whom, and not what.
TIMES = ("run", "first_s", "spent_s", "wall_s", "process_s", "inference_s", "train_s", "train_process_s")
_PROGRAM = ("version", "torch")  # of a cell: what ran it
_MOST = 10  # examples of each kind
Rows = dict[tuple[Any, ...], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class _Compared:
    """A table: where its rows come from, what names a row, what groups of rows are digested together, what counts."""

    source: str
    key: tuple[str, ...]
    group: tuple[str, ...]
    columns: tuple[str, ...]


def _columns(table: str, *without: str) -> tuple[str, ...]:
    return tuple(name for name in TABLES[table].names if name not in without)


_ROW = ("model", "arm", "sample", "repeat")
_CELL = ("model", "arm", "repeat", "cell")
_OF_CELL = "(SELECT t.*, c.model, c.arm, c.repeat FROM {} t JOIN cells c USING (cell))"
_ASIDE = "(SELECT t.* FROM {} t WHERE t.cell NOT IN (SELECT cell FROM cells))"

# A cell is named by its samples, too: the same rows may stand in other cells if samples were added in other steps.
COMPARED: dict[str, _Compared] = {
    "models": _Compared("models", ("model",), (), _columns("models", "model")),
    "samples": _Compared("samples", ("sample",), (), _columns("samples", "sample", "shard", "place")),
    "arms": _Compared("arms", ("model", "arm"), (), _columns("arms", "model", "arm")),
    "cells": _Compared("cells", _CELL, ("model", "arm", "repeat"), _columns("cells", *_CELL, *_PROGRAM)),
    "outcomes": _Compared("outcomes", _ROW, ("model", "arm", "repeat"), _columns("outcomes", *_ROW, "cell")),
    "outputs": _Compared(
        _OF_CELL.format("outputs"), _ROW, ("model", "arm", "repeat"), _columns("outputs", "cell", "sample")
    ),
    "scores": _Compared(
        _OF_CELL.format("scores"), (*_ROW, "detector"), ("model", "arm", "repeat", "detector"), ("score",)
    ),
    "scores to calibrate": _Compared(
        _ASIDE.format("scores"), ("cell", "sample", "detector"), ("cell", "detector"), ("score",)
    ),
    "measures": _Compared(
        _OF_CELL.format("measures"), (*_ROW, "measure"), ("model", "arm", "repeat", "measure"), ("value",)
    ),
}


@dataclass(frozen=True)
class Some:
    """How many, and the first of them by name."""

    n: int = 0
    examples: tuple[Mapping[str, Any], ...] = ()

    @property
    def shown(self) -> str:
        """The first one, in words."""
        return ", ".join(f"{name} {value}" for name, value in self.examples[0].items()) if self.examples else ""


@dataclass(frozen=True)
class TableDiff:
    """One table: rows that only one of the two has, rows that differ, and in which columns how often.

    `more_one` and `more_other` are rows that one of the two has more often than the other: a row is there once.
    """

    table: str
    only_one: Some
    only_other: Some
    differ: Some
    columns: Mapping[str, int] = field(default_factory=dict)
    more_one: Some = Some()
    more_other: Some = Some()

    @property
    def equal(self) -> bool:
        parts = (self.only_one, self.only_other, self.differ, self.more_one, self.more_other)
        return not any(part.n for part in parts)


@dataclass(frozen=True)
class LedgerDiff:
    """All tables; `tables` names only those that differ."""

    tables: tuple[TableDiff, ...]

    in_json: ClassVar[InJson] = {"equal": "equal"}

    @property
    def equal(self) -> bool:
        return all(part.equal for part in self.tables)


def diff_ledgers(one: str | Path | Ledger, other: str | Path | Ledger, *, times: bool = False) -> LedgerDiff:
    """Compare what readers see of two ledgers; with `times`, also when, how fast and by which run rows were made."""
    first, second = (given if isinstance(given, Ledger) else Ledger.open(given) for given in (one, other))
    found = [_diff(name, compared, first, second, times=times) for name, compared in COMPARED.items()]
    return LedgerDiff(tuple(part for part in found if not part.equal))


def _diff(name: str, compared: _Compared, one: Ledger, other: Ledger, *, times: bool) -> TableDiff:
    columns = [column for column in compared.columns if times or column not in TIMES]
    groups = _unlike_groups(compared, columns, one, other)
    rows = [_rows(ledger, compared, columns, groups) for ledger in (one, other)]
    return _compared(name, compared.key, columns, *rows)


def _unlike_groups(
    compared: _Compared, columns: Sequence[str], one: Ledger, other: Ledger
) -> list[tuple[Any, ...]] | None:
    """The groups whose rows are not all the same; None where the table is compared as a whole."""
    if not compared.group:
        return None
    names = ", ".join(compared.group)
    digest = digest_of_rows((*compared.key, *columns))
    sql = f"SELECT {names}, count(*) AS n, {digest} AS digest FROM {compared.source} GROUP BY ALL"
    sides = [{tuple(found.values()) for found in ledger.query(sql).to_pylist()} for ledger in (one, other)]
    return sorted({group[:-2] for group in sides[0] ^ sides[1]}, key=str)


def digest_of_rows(columns: Sequence[str]) -> str:
    """SQL: the same for the same rows, however often each of them and in any order (an exclusive or loses doubles)."""
    return f"sum(hash({', '.join(columns)})::HUGEINT)::VARCHAR"


def _rows(ledger: Ledger, compared: _Compared, columns: Sequence[str], groups: list[tuple[Any, ...]] | None) -> Rows:
    """Key -> values of every row that has it, of the rows of these groups."""
    if groups == []:
        return {}
    where, given = "true", {}
    if groups is not None:
        given = {f"g{place}": [group[place] for group in groups] for place in range(len(compared.group))}
        lists = ", ".join(f"unnest(${name}) AS {name}" for name in given)
        same = " AND ".join(
            f"g.g{place} IS NOT DISTINCT FROM r.{column}" for place, column in enumerate(compared.group)
        )
        where = f"EXISTS (SELECT 1 FROM (SELECT {lists}) g WHERE {same})"
    names = ", ".join((*compared.key, *columns))
    table: pa.Table = ledger.query(f"SELECT {names} FROM {compared.source} r WHERE {where}", given)
    n_key = len(compared.key)
    rows: Rows = {}
    for row in (tuple(one.values()) for one in table.to_pylist()):
        rows.setdefault(row[:n_key], []).append(row[n_key:])
    return rows


def _compared(
    name: str,
    key: Sequence[str],
    columns: Sequence[str],
    one: Rows,
    other: Rows,
) -> TableDiff:
    def some(keys: list[tuple[Any, ...]]) -> Some:
        first = sorted(keys, key=str)[:_MOST]
        return Some(len(keys), tuple(dict(zip(key, place, strict=True)) for place in first))

    both = one.keys() & other.keys()
    unlike = {place: _unlike(one[place], other[place]) for place in both}
    unlike = {place: which for place, which in unlike.items() if which}
    counts = {column: sum(at in which for which in unlike.values()) for at, column in enumerate(columns)}
    return TableDiff(
        table=name,
        only_one=some([place for place in one if place not in other]),
        only_other=some([place for place in other if place not in one]),
        differ=some(list(unlike)),
        columns={column: n for column, n in counts.items() if n},
        more_one=some([place for place in both if len(one[place]) > len(other[place])]),
        more_other=some([place for place in both if len(one[place]) < len(other[place])]),
    )


def _unlike(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> set[int]:
    """The places at which rows of one name differ; as text, because NaN differs from itself."""
    pairs = zip(sorted(one, key=repr), sorted(other, key=repr), strict=False)
    return {
        at
        for ours, theirs in pairs
        for at, (a, b) in enumerate(zip(ours, theirs, strict=True))
        if a != b and repr(a) != repr(b)
    }
