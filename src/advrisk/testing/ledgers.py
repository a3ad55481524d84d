"""Ledger rows in a form in which two runs of one study can be compared."""

from pathlib import Path
from typing import Any

from advrisk.ledger import Ledger

# Columns that say when and by whom, not what: two runs of one study may differ in them.
INCIDENTAL = ("run", "first_s", "spent_s")


def outcome_rows(folder: Path) -> list[dict[str, Any]]:
    """Every outcome row without the incidental columns, in a fixed order."""
    rows = Ledger.open(folder).outcomes().to_pylist()
    return [{name: value for name, value in row.items() if name not in INCIDENTAL} for row in rows]


def output_rows(folder: Path) -> list[dict[str, Any]]:
    """Every stored answer, in a fixed order."""
    rows: list[dict[str, Any]] = Ledger.open(folder).query("FROM outputs ORDER BY cell, sample").to_pylist()
    return rows
