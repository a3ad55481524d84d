"""Rows mean something: what no run of advrisk writes is refused when a ledger is opened, and named.

Digests show that rows are as they were written, not that they make sense: a ledger may come from another program. Each
file is checked once, as long as it stays what it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advrisk.core.errors import LedgerError
from advrisk.ledger.tables import OUTCOMES
from advrisk.ledger.verified import file_state

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_REPEATS = 1_000_000  # of one arm; the last one is called by one less


@dataclass(frozen=True)
class Rule:
    """What a column must hold, and the condition in SQL on which a row breaks that."""

    column: str
    needed: str
    broken: str


def _present(*columns: str) -> list[Rule]:
    return [Rule(column, "a name is needed", f"{column} IS NULL") for column in columns]


def _one_of(column: str, *values: str, null: bool) -> Rule:
    listed = ", ".join(f"'{value}'" for value in values)
    missing = "false" if null else f"{column} IS NULL"
    needed = f"one of {', '.join(values)} is needed"
    return Rule(column, needed, f"({missing} OR {column}::VARCHAR NOT IN ({listed}))")


def _size(*columns: str) -> list[Rule]:
    """Numbers from 0 up, possibly infinite, or null."""
    needed = "a number from 0 up is needed"
    return [Rule(column, needed, f"(isnan({column}) OR {column} < 0)") for column in columns]


def _count(*columns: str) -> list[Rule]:
    return [Rule(column, "a whole number from 0 up is needed", f"{column} < 0") for column in columns]


def _object(column: str, *, plain: bool) -> Rule:
    """JSON text of an object, or null; with `plain`, its values are text, numbers and truth values."""
    json = f"CASE WHEN json_valid({column}) THEN {column} ELSE '0' END"
    nested = f" OR coalesce(list_has_any(json_type({json}, '$.*'), ['ARRAY', 'OBJECT']), false)" if plain else ""
    kind = "a JSON object with plain values" if plain else "a JSON object"
    return Rule(column, f"{kind} is needed", f"({column} IS NOT NULL AND (json_type({json}) <> 'OBJECT'{nested}))")


_REPEAT = Rule(
    "repeat", f"a whole number from 0 to {MAX_REPEATS - 1} is needed", f"repeat NOT BETWEEN 0 AND {MAX_REPEATS - 1}"
)
_NORMS = ("l0", "l1", "l2", "linf")
_KINDS = ("clean", "corruption", "attack")
RULES: Mapping[str, Sequence[Rule]] = {
    "outcomes": (
        _one_of("outcome", *OUTCOMES, null=False),
        _one_of("kind", *_KINDS, null=True),
        _one_of("norm", *_NORMS, null=True),
        Rule("eps", "a finite number from 0 up is needed", "(NOT isfinite(eps) OR eps < 0)"),
        *_size(*(f"{kind}_{norm}" for kind in ("d", "near") for norm in _NORMS), "first_s", "spent_s"),
        *_count("n_forward", "n_backward", "n_judge", "n_rejected", "n_forward_first", "n_backward_first"),
        _REPEAT,
        Rule("success_rate", "a share is needed", "(isnan(success_rate) OR success_rate NOT BETWEEN 0 AND 1)"),
    ),
    "arms": (
        *_present("model", "arm"),
        _one_of("origin", "study", "surrogate", "search", "frozen", "import", "dropped", null=True),
        _one_of("kind", *_KINDS, null=True),
        _one_of("norm", *_NORMS, null=True),
        Rule("eps", "a finite number from 0 up is needed", "(NOT isfinite(eps) OR eps < 0)"),
        Rule(
            "repeats", f"a whole number from 1 to {MAX_REPEATS} is needed", f"repeats NOT BETWEEN 1 AND {MAX_REPEATS}"
        ),
        _object("params", plain=False),
    ),
    "models": (
        *_present("model"),
        *_size("train_s", "train_process_s", "train_cost"),
        *_count("train_samples"),
        Rule("n_classes", "a whole number from 1 up is needed", "n_classes < 1"),
        _object("tags", plain=True),
    ),
    "samples": (
        *_present("sample"),
        Rule(
            "split",
            "a split is needed (train, tune, calibrate, evaluate)",
            "(split NOT IN ('train', 'tune', 'calibrate', 'evaluate') AND NOT starts_with(split, 'dropped'))",
        ),
        Rule("weight", "a finite number from 0 up is needed", "(NOT isfinite(weight) OR weight < 0)"),
        _object("strata", plain=True),
    ),
    "cells": (
        *_count("n_samples", "n_errors"),
        *_size("wall_s", "process_s", "inference_s"),
        _REPEAT,
    ),
}
_CHECKED: set[tuple[str, int, int, int]] = set()  # files, with size, time of change and place on the disk


def refuse_invalid(connection: "DuckDBPyConnection", segments: Iterable[Path]) -> None:
    """Raise a LedgerError for the first row, in the views `all_…` of these segments, that no run writes."""
    folders = list(segments)
    for table, rules in RULES.items():
        paths = [segment / f"{table}.parquet" for segment in folders]
        new = {str(path): (str(path), *state) for path in paths if (state := file_state(path)) is not None}
        new = {path: state for path, state in new.items() if state not in _CHECKED}
        if new:
            _refuse(connection, table, rules, sorted(new))
            _CHECKED.update(new.values())


def _refuse(connection: "DuckDBPyConnection", table: str, rules: Sequence[Rule], paths: Sequence[str]) -> None:
    cases = " ".join(f"WHEN {rule.broken} THEN {number}" for number, rule in enumerate(rules))
    judged = f"SELECT CASE {cases} END AS rule, * FROM all_{table} WHERE filename IN (SELECT unnest($paths))"
    broken = f"SELECT * FROM ({judged}) WHERE rule IS NOT NULL LIMIT 1"
    for row in connection.sql(broken, params={"paths": list(paths)}).to_arrow_table().to_pylist():
        rule = rules[row["rule"]]
        raise LedgerError(
            f"{row['filename']}: row {row['file_row_number'] + 1}: {table}.{rule.column}: {rule.needed}, found "
            f"{str(row[rule.column])[:80]!r}; no run of advrisk writes this, take the ledger from its source"
        )
