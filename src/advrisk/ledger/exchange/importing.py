"""Somebody else's outcomes -> a ledger, from CSV or Parquet, so that every assessment works on them."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.names import did_you_mean
from advrisk.core.traits import Norm
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.storage import Storage
from advrisk.ledger.tables import OUTCOMES, TABLES, table_from
from advrisk.study import ArmKind

NORMS = get_args(Norm)
KINDS = get_args(ArmKind)
# What a file may hold beside the columns of `outcomes`: a distance in one norm, and what belongs to the sample.
_EXTRA = ("distance", "label", "weight")
# Names stay as they are written: sample 007 is not sample 7.
_TEXT = [field.name for field in TABLES["outcomes"] if pa.types.is_dictionary(field.type)]


def import_outcomes(source: Path, place: Path | Storage, *, norm: str | None = None) -> int:
    """Append the rows of a CSV or Parquet file to the ledger at `place`; returns how many.

    Needed: `model`, `sample`, and either `d_l0` … `d_linf` or `distance` (with `norm` as a column or an
    argument). `outcome` says what happened; without it, a finite distance is a success (at 0: already
    wrong) and an empty or infinite one means that the sample resisted. Optional: every other column of
    `outcomes`, and `label` and `weight` of the sample.
    """
    table = read_table(source, text=_TEXT)
    rows = _rows(table, source, norm)
    folder = Storage.of(place).folder
    with locked(folder):
        ledger = Ledger.open(place, create=True)
        held = {(row["model"], row["arm"]) for row in ledger.query("SELECT model, arm FROM arms").to_pylist()}
        for row in rows:
            if (row["model"], row["arm"]) in held:
                raise LedgerError(f"{folder}: already holds {row['arm']} against {row['model']}; choose another folder")
        ledger.append(_tables(rows, ledger))
    return len(rows)


def read_table(source: Path, *, text: Iterable[str]) -> pa.Table:
    """The table of a CSV or Parquet file; the columns that `text` names stay as they are written."""
    try:
        if source.suffix == ".parquet":
            return _refuse_unreadable(pq.read_table(source), source)
        # An empty field says nothing; "nan" is a number gone wrong, and is refused below.
        options = pacsv.ConvertOptions(column_types=dict.fromkeys(text, pa.string()), null_values=[""])
        return _refuse_unreadable(pacsv.read_csv(source, convert_options=options), source)
    except FileNotFoundError:
        raise LedgerError(f"{source}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise LedgerError(f"{source}: holds text that is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LedgerError(f"{source}: cannot be read as {source.suffix or 'CSV'}: {error}") from None


def _refuse_unreadable(table: pa.Table, source: Path) -> pa.Table:
    table.validate(full=True)  # lengths and offsets of a Parquet file, and that text is UTF-8
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise LedgerError(f"{source}: the column {twice[0]!r} stands here twice; keep one of them")
    if len(table.column_names) == 1 and ";" in table.column_names[0]:
        raise LedgerError(f"{source}: columns are separated by semicolons; separate them by commas")
    return table


def _rows(table: pa.Table, source: Path, norm: str | None) -> list[dict[str, Any]]:
    known = [*TABLES["outcomes"].names, *_EXTRA]
    for name in table.column_names:
        if name not in known:
            raise LedgerError(f"{source}: unknown column {name!r}; {did_you_mean(name, known)}")
    for name in ("model", "sample"):
        if name not in table.column_names:
            raise LedgerError(f"{source}: the column {name!r} is missing")
    if not {"distance", *(f"d_{name}" for name in NORMS)} & set(table.column_names):
        raise LedgerError(f"{source}: a column of distances is missing: d_linf, or distance with a norm")
    measured = [name for name in NORMS if f"d_{name}" in table.column_names]
    if norm is None and len(measured) == 1 and not {"distance", "norm"} & set(table.column_names):
        norm = measured[0]
    rows = [_row(row, f"{source}, row {number}", norm) for number, row in enumerate(table.to_pylist(), start=1)]
    if not rows:
        raise LedgerError(f"{source}: holds no row")
    keys = [(row["model"], row["arm"], row["sample"], row["repeat"]) for row in rows]
    twice, count = Counter(keys).most_common(1)[0]
    if count > 1:
        raise LedgerError(f"{source}: model {twice[0]}, arm {twice[1]}, sample {twice[2]} stands here twice")
    return rows


def _row(row: dict[str, Any], place: str, norm: str | None) -> dict[str, Any]:
    row = {name: value for name, value in row.items() if value is not None and value != ""}
    for name in ("model", "sample"):
        if name not in row:
            raise LedgerError(f"{place}: {name} is empty")
        row[name] = str(row[name])
    repeat, weight = row.get("repeat", 0), row.get("weight", 1)
    if not isinstance(repeat, int) or repeat < 0:
        raise LedgerError(f"{place}: repeat must be a whole number of at least 0, found {repeat!r}")
    if not isinstance(weight, int | float) or not 0 < weight < float("inf"):
        raise LedgerError(f"{place}: weight must be a positive number, found {weight!r}")
    for name, known in (("norm", NORMS), ("kind", KINDS)):
        if name in row and row[name] not in known:
            raise LedgerError(f"{place}: {name} is {row[name]!r}; {did_you_mean(row[name], known)}")
    distance = row.pop("distance", None)
    measured = row.setdefault("norm", norm) if distance is not None else row.get("norm", norm)
    if distance is not None:
        if measured not in NORMS:
            raise LedgerError(f"{place}: a distance in which norm? found {measured!r}; {did_you_mean(measured, NORMS)}")
        row[f"d_{measured}"] = distance
    sizes = [row[f"d_{name}"] for name in NORMS if f"d_{name}" in row]
    if any(not isinstance(size, int | float) or size != size or size < 0 for size in sizes):
        raise LedgerError(f"{place}: a distance must be a number of at least 0, found {sizes}")
    finite = [size for size in sizes if size != float("inf")]
    outcome = row.setdefault("outcome", "resisted" if not finite else "success" if max(finite) > 0 else "already_wrong")
    if outcome not in OUTCOMES:
        raise LedgerError(f"{place}: outcome {outcome!r}; {did_you_mean(outcome, OUTCOMES)}")
    if outcome == "success" and not finite:
        raise LedgerError(f"{place}: a success without a distance")
    if outcome != "success":
        row |= {f"d_{name}": None for name in NORMS}
    row.setdefault("arm", f"imported-{measured or 'attack'}")
    return {"kind": "attack", "family": "imported", "repeat": 0, "criterion": "label", "norm": measured} | row


def _tables(rows: list[dict[str, Any]], ledger: Ledger) -> dict[str, pa.Table]:
    content = digest([[str(value) for value in row.values()] for row in rows])
    cells: dict[str, dict[str, Any]] = {}
    arms: dict[tuple[str, str], dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    samples: dict[str, dict[str, Any]] = {}
    for row in rows:
        model, arm, repeat = row["model"], row["arm"], row["repeat"]
        recipe = digest(["import", content, model, arm])
        row["cell"], row["run"] = digest([recipe, repeat]), f"import-{content[:8]}"
        cell = cells.setdefault(row["cell"], {"recipe": recipe, "accounting": "imported", "flags": []})
        cell |= {name: row[name] for name in ("cell", "run", "model", "arm", "repeat")}
        cell["n_samples"] = cell.get("n_samples", 0) + 1
        cell["n_errors"] = cell.get("n_errors", 0) + (row["outcome"] in ("error", "timeout"))
        named = arms.setdefault((model, arm), {"recipe": recipe, "origin": "import", "repeats": 0})
        named |= {name: row.get(name) for name in ("model", "arm", "kind", "family", "norm", "eps", "objective")}
        named["repeats"] = max(named["repeats"], repeat + 1)
        models[model] = {"model": model, "digest": f"imported-{content}"}
        weight = float(row.get("weight", 1.0))
        samples[row["sample"]] = {"sample": row["sample"], "split": "evaluate", "weight": weight, "strata": "{}"}
        samples[row["sample"]]["label"] = row.get("label")
    outcomes = [{name: row.get(name) for name in TABLES["outcomes"].names} for row in rows]
    tables = {"outcomes": outcomes, "cells": [*cells.values()], "arms": [*arms.values()]}
    for name, column, entries in (("models", "model", models), ("samples", "sample", samples)):
        held = set(ledger.query(f"SELECT {column} FROM {name}")[column].to_pylist())  # known better than by the file
        tables[name] = [entry for key, entry in entries.items() if key not in held]
    return {name: _table(name, entries) for name, entries in tables.items() if entries}


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return table_from(name, {column: [row.get(column) for row in rows] for column in rows[0]})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise LedgerError(f"{name}: a value is of the wrong type: {error}") from None
