"""The cells, arms and models of imported rows, gathered while the rows pass through."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.ledger.exchange.outcome_file import Columns
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.tables import table_from

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
