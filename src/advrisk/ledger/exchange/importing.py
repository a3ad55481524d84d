"""Outcomes of other tools -> a ledger, from CSV or Parquet, so that every assessment works on them.

Rows pass through piece by piece into a file that readers ignore. DuckDB finds there what only all rows together show:
rows that stand there twice, and samples with two labels. Then everything is published as one segment.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.ledger.exchange.outcome_file import NAMED, OTHERS, Columns, default_norm, read_piece
from advrisk.ledger.exchange.source import Pieces, file_digest, open_pieces
from advrisk.ledger.ledger import Ledger, interrupts_kept, quiet_connection
from advrisk.ledger.lock import locked
from advrisk.ledger.segments import publish, scratch_folder, tidy, write_table
from advrisk.ledger.storage import Storage
from advrisk.ledger.tables import TABLES, constant, table_from

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_MEMORY_MB = 400  # of DuckDB, which works on the disk beyond that
_THREADS = 4  # at most: each needs memory of its own
_NAMED = pa.schema({"sample": pa.string(), "label": pa.int32(), "weight": pa.float64(), "row": pa.int64()})

# Numbers of 8 bytes are grouped in much less time than names; rows that share one are compared by name.
_TWICE = """
    CREATE TEMP TABLE twice AS SELECT hash(cell, sample) AS key FROM outcomes GROUP BY key HAVING count(*) > 1;
    SELECT any_value(model) AS model, any_value(arm) AS arm, sample, any_value(repeat) AS repeat,
           min(file_row_number + 1, 2) AS places
    FROM outcomes WHERE hash(cell, sample) IN (FROM twice)
    GROUP BY cell, sample HAVING count(*) > 1 ORDER BY places[2] LIMIT 1
"""
_CONTRADICTED = """
    WITH first AS (
        SELECT sample, arg_min({0}, row) AS value, min(row) AS place FROM named
        WHERE {0} IS NOT NULL GROUP BY sample HAVING min({0}) <> max({0})
    )
    SELECT sample, named.{0} AS other, named.row AS row, first.value AS value, first.place AS place
    FROM named JOIN first USING (sample) WHERE named.{0} <> first.value ORDER BY named.row LIMIT 1
"""
_NEW_SAMPLES = """
    SELECT sample, max(label) AS label, coalesce(max(weight), 1) AS weight
    FROM named ANTI JOIN held USING (sample) GROUP BY sample ORDER BY min(row)
"""
_OF_ARM = ("kind", "family", "norm", "eps", "objective")  # the last row of an arm decides
_NO_VERDICT = pa.array(["error", "timeout"])
Row = dict[str, Any]


@dataclass
class ImportedCells:
    """What was met so far. A cell is what a file says of one model, arm and repeat."""

    content: str  # a digest of the file
    folder: str  # for messages
    held: frozenset[tuple[str, str]]  # models and arms that the ledger has
    held_models: frozenset[str]
    n_rows: int = 0
    cells: dict[tuple[str, str, int], Row] = field(default_factory=dict)
    arms: dict[tuple[str, str], Row] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, content: str) -> "ImportedCells":
        """None so far, beside what a ledger holds."""
        arms = ledger.query("SELECT model, arm FROM arms").to_pylist()
        models = ledger.query("SELECT model FROM models")["model"].to_pylist()
        held = frozenset((row["model"], row["arm"]) for row in arms)
        return cls(content, str(ledger.storage.folder), held, frozenset(models))

    @property
    def run(self) -> str:
        """What names the import in its rows."""
        return f"import-{self.content[:8]}"

    def add(self, columns: Columns) -> pa.DictionaryArray:
        """Count the rows of one piece; returns the names of their cells."""
        keys, of_row = _cell_keys(columns)
        outcome = columns["outcome"]
        failed = pc.is_in(outcome.dictionary, value_set=_NO_VERDICT).take(outcome.indices)
        n_samples, n_errors = np.bincount(of_row), np.bincount(of_row, weights=failed.to_numpy(zero_copy_only=False))
        last = np.zeros(len(keys), np.int64)
        last[of_row] = np.arange(len(of_row))  # of several values for one place, numpy keeps the last
        for number in np.argsort(last):  # so that of an arm's rows the last one is entered last
            self._enter(keys[number], {name: columns[name][int(last[number])].as_py() for name in _OF_ARM})
        for key, n, n_wrong in zip(keys, n_samples, n_errors, strict=True):
            self.cells[key]["n_samples"] += int(n)
            self.cells[key]["n_errors"] += int(n_wrong)
        self.n_rows += len(of_row)
        return pa.DictionaryArray.from_arrays(of_row.astype(np.int32), [self.cells[key]["cell"] for key in keys])

    def _enter(self, key: tuple[str, str, int], last: Row) -> None:
        model, arm, repeat = key
        if (model, arm) in self.held:
            raise LedgerError(f"{self.folder}: already holds {arm} against {model}; choose another folder")
        recipe = digest(["import", self.content, model, arm])
        named = {"recipe": recipe, "model": model, "arm": arm}
        if key not in self.cells:
            of_cell = {"cell": digest([recipe, repeat]), "run": self.run, "repeat": repeat, "accounting": "imported"}
            self.cells[key] = named | of_cell | {"flags": [], "n_samples": 0, "n_errors": 0}
        repeats = max(repeat + 1, self.arms.get((model, arm), {"repeats": 0})["repeats"])
        self.arms[model, arm] = named | last | {"origin": "import", "repeats": repeats}

    def tables(self) -> dict[str, pa.Table]:
        """The cells, arms and models as tables of the ledger; models that it has are left out."""
        models = [model for model in dict.fromkeys(model for model, _ in self.arms) if model not in self.held_models]
        named = [{"model": model, "digest": f"imported-{self.content}"} for model in models]
        rows = {"cells": [*self.cells.values()], "arms": [*self.arms.values()], "models": named}
        return {
            name: table_from(name, {column: [row[column] for row in entries] for column in entries[0]})
            for name, entries in rows.items()
            if entries
        }


def _cell_keys(columns: Columns) -> tuple[list[tuple[str, str, int]], Any]:
    """The models, arms and repeats that occur together, and which of these each row has."""
    model, arm, repeat = columns["model"], columns["arm"], columns["repeat"].dictionary_encode()
    n_arms, n_repeats = len(arm.dictionary), len(repeat.dictionary)
    codes = model.indices.to_numpy().astype(np.int64) * n_arms + arm.indices.to_numpy()
    together = pa.array(codes * n_repeats + repeat.indices.to_numpy()).dictionary_encode()
    code = together.dictionary.to_numpy()
    names = (
        model.dictionary.take(pa.array(code // n_repeats // n_arms)).to_pylist(),
        arm.dictionary.take(pa.array(code // n_repeats % n_arms)).to_pylist(),
        repeat.dictionary.take(pa.array(code % n_repeats)).to_pylist(),
    )
    return list(zip(*names, strict=True)), together.indices.to_numpy()


def import_outcomes(source: Path, place: Path | Storage, *, norm: str | None = None) -> int:
    """Append the rows of a CSV or Parquet file to the ledger at `place`; returns how many.

    Needed: `model`, `sample`, and either `d_l0` … `d_linf` or `distance` (with `norm` as a column or an
    argument). `outcome` says what happened; without it, a finite distance is a success (at 0: already
    wrong) and an empty or infinite one means that the sample resisted. Optional: every other column of
    `outcomes`, and `label` and `weight` of the sample.
    """
    with open_pieces(source, names=NAMED, text=OTHERS) as pieces:
        norm = default_norm(source, pieces.columns, norm)
        with locked(Storage.of(place).folder), _appended(place) as ledger, scratch_folder(ledger.path) as scratch:
            cells = ImportedCells.of(ledger, file_digest(source, norm))
            rows = _outcomes(source, pieces, norm, cells, scratch / "named.parquet")
            write_table(scratch / "outcomes.parquet", "outcomes", rows)
            if not cells.n_rows:
                raise LedgerError(f"{source}: holds no row")
            _verify_together(source, ledger, scratch)
            written = {name: scratch / f"{name}.parquet" for name in ("outcomes", "samples")}
            if not pq.read_metadata(written["samples"]).num_rows:
                del written["samples"]
            publish(ledger.storage, {**cells.tables(), **written})
    return cells.n_rows


@contextmanager
def _appended(place: Path | Storage) -> Iterator[Ledger]:
    """The ledger to append to, tidied up after killed writers; one that is made here is gone if anything fails."""
    storage = Storage.of(place)
    is_new = not storage.ledger.exists()
    ledger = Ledger.open(place, create=True)
    try:
        tidy(ledger.storage)
        yield ledger
    except BaseException:
        if is_new and ledger.path == storage.ledger:
            shutil.rmtree(ledger.path, ignore_errors=True)
        raise


def _outcomes(source: Path, pieces: Pieces, norm: str | None, cells: ImportedCells, named: Path) -> Iterator[pa.Table]:
    """The rows of `outcomes`, piece by piece; what they say of samples goes into the file `named`."""
    with pq.ParquetWriter(named, _NAMED, compression="lz4") as samples:
        for batch in pieces.batches:
            columns, fault = read_piece(batch, norm)
            if fault:
                raise LedgerError(f"{source}, row {cells.n_rows + fault.place + 1}: {fault.what}")
            n = len(batch)
            if not n:
                continue
            samples.write_table(_named(columns, n, cells.n_rows))
            columns |= {"cell": cells.add(columns), "run": constant(cells.run, n)}
            yield table_from("outcomes", {name: columns[name] for name in TABLES["outcomes"].names})


def _named(columns: Columns, n: int, n_before: int) -> pa.Table:
    """What these rows say of samples, each thing once, with the first row that says it, counted from 1."""
    said = {"sample": columns["sample"].indices, "label": columns["label"], "weight": columns["weight"]}
    rows = pa.table(said | {"row": pa.array(range(n_before + 1, n_before + n + 1))})
    first = rows.group_by(list(said)).aggregate([("row", "min")])
    sample = columns["sample"].dictionary.take(first["sample"].combine_chunks())
    return pa.table([sample, first["label"], first["weight"], first["row_min"]], schema=_NAMED)


def _verify_together(source: Path, ledger: Ledger, scratch: Path) -> None:
    """Refuse rows that contradict each other, and write the samples that the ledger does not have."""
    import duckdb

    try:
        with interrupts_kept(), _database(ledger, scratch) as connection:
            _refuse_twice(connection, source)
            _refuse_contradicted(connection, source, "label")
            _refuse_contradicted(connection, source, "weight")
            write_table(scratch / "samples.parquet", "samples", _new_samples(connection))
    except duckdb.Error as error:
        raise LedgerError(f"{ledger.path}: rows could not be compared: {error}") from None


@contextmanager
def _database(ledger: Ledger, scratch: Path) -> Iterator["DuckDBPyConnection"]:
    """What was written so far, for queries that use the disk where memory does not suffice."""
    with quiet_connection(_MEMORY_MB) as connection:
        connection.execute(f"SET threads = {min(_THREADS, os.cpu_count() or 1)}")
        connection.execute("SET temp_directory = $folder", {"folder": str(scratch / "spilled")})
        connection.register("held", ledger.query("SELECT sample FROM samples"))
        for name in ("outcomes", "named"):
            file = str(scratch / f"{name}.parquet").replace("'", "''")
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{file}', file_row_number = true)")
        yield connection


def _refuse_twice(connection: "DuckDBPyConnection", source: Path) -> None:
    if row := _row(connection, _TWICE):
        first, second = row["places"]
        repeat = f", repeat {row['repeat']}" if row["repeat"] else ""
        raise LedgerError(
            f"{source}, row {second}: model {row['model']}, arm {row['arm']}, sample {row['sample']}{repeat} stands "
            f"here twice, first in row {first}; keep one of them, or number draws in a column `repeat`"
        )


def _refuse_contradicted(connection: "DuckDBPyConnection", source: Path, column: str) -> None:
    if row := _row(connection, _CONTRADICTED.format(column)):
        raise LedgerError(
            f"{source}, row {row['row']}: sample {row['sample']} has {column} {row['other']}, but {row['value']} in "
            f"row {row['place']}; a sample has one {column}, whatever the model and the arm"
        )


def _row(connection: "DuckDBPyConnection", sql: str) -> dict[str, Any] | None:
    """The only row of an answer, if there is one."""
    rows: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
    return rows[0] if rows else None


def _new_samples(connection: "DuckDBPyConnection") -> Iterator[pa.Table]:
    for batch in connection.sql(_NEW_SAMPLES).to_arrow_reader(2**18):
        n = len(batch)
        columns = {name: batch[name] for name in ("sample", "label", "weight")}
        columns |= {"split": pa.repeat("evaluate", n), "strata": pa.repeat("{}", n)}
        yield table_from("samples", columns)
