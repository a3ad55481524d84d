"""Taking things out of a run: tables as CSV or Parquet, inputs as .npz."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from advrisk.core.errors import LedgerError
from advrisk.core.names import did_you_mean, matches, no_match
from advrisk.ledger.inputs import cell_inputs, read_inputs, shard_inputs
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.tables import TABLES


def export_table(ledger: Ledger, name: str, target: Path) -> int:
    """Write one table to a .csv or .parquet file; returns the number of rows."""
    if name not in TABLES:
        raise LedgerError(f"there is no table called {name!r}; {did_you_mean(name, TABLES)}")
    if target.suffix not in (".csv", ".parquet"):
        raise LedgerError(f"{target}: the name must end in .csv or .parquet")
    table = ledger.query(f"SELECT * FROM {name}")
    try:
        if target.suffix == ".parquet":
            pq.write_table(table, target)
        else:
            pacsv.write_csv(_flat(table), target)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error}") from None
    return int(table.num_rows)


def export_inputs(
    folder: Path, ledger: Ledger, target: Path, *, model: str | None = None, arm: str | None = None
) -> int:
    """Write kept adversarial inputs beside their originals into one .npz; returns how many.

    Arrays: x_adv, x, sample, model, arm, repeat, label, prediction.
    """
    known = ledger.query("SELECT DISTINCT model, arm FROM arms")
    models, arms = set(known["model"].to_pylist()), set(known["arm"].to_pylist())
    if model is not None and model not in models:
        raise LedgerError(f"{folder}: no model is called {model!r}; {did_you_mean(model, models)}")
    if arm is not None and (complaint := no_match(arm, arms)):
        raise LedgerError(f"{folder}: {complaint}")
    rows = ledger.query(
        "SELECT o.cell, o.sample, o.model, o.arm, o.repeat, s.label, o.prediction, s.shard FROM outcomes o "
        "JOIN samples s USING (sample) WHERE o.outcome = 'success' AND o.kind = 'attack' "
        "AND coalesce(s.split NOT IN ('tune', 'calibrate'), true) "
        "AND ($model IS NULL OR o.model = $model) ORDER BY ALL",
        {"model": model},
    ).to_pylist()
    rows = [row for row in rows if arm is None or matches(row["arm"], [arm])]
    fetch = ledger.storage.fetch
    kept: dict[Path, dict[str, Any]] = {}
    found = []
    for row in rows:
        cell, shard = fetch(cell_inputs(folder, row["cell"])), fetch(shard_inputs(folder, str(row["shard"])))
        for path in (cell, shard):
            if path not in kept:
                kept[path] = read_inputs(path) if path.is_file() else {}
        if row["sample"] in kept[cell] and row["sample"] in kept[shard]:
            found.append((row, kept[cell][row["sample"]], kept[shard][row["sample"]]))
    if not found:
        raise LedgerError(
            f"{folder}: no input of a success was kept that matches; nothing succeeded, or `keep_inputs` was `none`"
        )
    arrays: dict[str, Any] = {"x_adv": np.stack([x for _, x, _ in found]), "x": np.stack([x for _, _, x in found])}
    for name in ("sample", "model", "arm", "repeat", "label", "prediction"):
        arrays[name] = np.array([row[name] for row, _, _ in found])
    try:
        np.savez_compressed(target, **arrays)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error}") from None
    return len(found)


def _flat(table: pa.Table) -> pa.Table:
    """CSV has no lists: they become JSON-like text."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            text = pa.array([None if value is None else str(value) for value in table.column(place).to_pylist()])
            table = table.set_column(place, field.name, text)
    return table
