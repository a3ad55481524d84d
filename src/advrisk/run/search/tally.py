"""Which samples each cell of a search broke: what the ledger holds, and what comes in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from advrisk.ledger import Ledger
from advrisk.run.rows import CellResult

# Rows of cells as they were published last, whatever arms are recorded now.
_ROWS = """
    SELECT cell::VARCHAR AS cell, sample::VARCHAR AS sample, outcome::VARCHAR AS outcome, clean_prediction
    FROM all_outcomes WHERE sample IN (SELECT unnest($samples))
    QUALIFY row_number() OVER (PARTITION BY cell, sample ORDER BY filename DESC, file_row_number DESC) = 1
"""


@dataclass
class Tally:
    """Cell -> the samples that it broke: right when clean, and wrong under attack."""

    labels: Mapping[str, int]  # of the samples to tune on
    broken: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, labels: Mapping[str, int], finished: set[str]) -> "Tally":
        """What a ledger says of cells that need not be run again."""
        tally = cls(labels)
        table = ledger.query(_ROWS, {"samples": list(labels)})
        rows: dict[str, list[dict[str, object]]] = {}
        for row in table.to_pylist():
            if row["cell"] in finished:
                rows.setdefault(row["cell"], []).append(row)
        tally.broken = {cell: tally._broken(of_cell) for cell, of_cell in rows.items()}
        return tally

    def add(self, result: CellResult) -> None:
        """Take in a cell that was just carried out."""
        table: pa.Table = result.tables["outcomes"].select(["sample", "outcome", "clean_prediction"])
        self.broken[result.cell] = self._broken(table.to_pylist())

    def _broken(self, rows: Sequence[Mapping[str, object]]) -> frozenset[str]:
        return frozenset(
            str(row["sample"])
            for row in rows
            if row["outcome"] == "success" and row["clean_prediction"] == self.labels.get(str(row["sample"]))
        )
