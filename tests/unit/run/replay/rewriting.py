"""Rewriting the rows of a run as its operator could: through the ledger's own writer, with digests that fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from advrisk.ledger import Ledger, table_from

Row = dict[str, Any]


def rewrite_rows(folder: Path, change: Callable[[Row], Row | None], table: str = "outcomes") -> int:
    """Publish every cell again, with the rows of a table as `change` gives them; returns how many it changed."""
    ledger, n_changed, tables = Ledger.open(folder), 0, {}
    for name in ("outcomes", "outputs", "cells"):
        rows = ledger.query(f"FROM {name}").to_pylist()
        if name == table:
            changed = [change(dict(row)) or row for row in rows]
            n_changed = sum(one != row for one, row in zip(changed, rows, strict=True))
            rows = changed
        tables[name] = table_from(name, {column: [row[column] for row in rows] for column in rows[0]})
    ledger.append(tables)
    return n_changed


def resisted(row: Row) -> Row:
    """The row of a success as an attack would have left it that failed."""
    return row | {
        "outcome": "resisted",
        "prediction": row["clean_prediction"],
        "survives_8bit": None,
        "success_rate": 0.0,
        "n_forward_first": None,
        "n_backward_first": None,
    }
