"""What each cell of a search broke and where it has no answer, and which settings can still be the worst."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from advrisk.ledger import Ledger
from advrisk.run.rows import CellResult

# Rows of cells as they were published last, whatever arms are recorded now.
_ROWS = """
    SELECT cell::VARCHAR AS cell, sample::VARCHAR AS sample, outcome::VARCHAR AS outcome, clean_prediction,
           criterion::VARCHAR AS criterion
    FROM all_outcomes WHERE sample IN (SELECT unnest($samples))
    QUALIFY row_number() OVER (PARTITION BY cell, sample ORDER BY filename DESC, file_row_number DESC) = 1
"""


@dataclass
class Tally:
    """Cell -> the samples that it broke, not wrong when clean and wrong under attack; and those it has no answer for.

    Where success is a wrong class, an attack succeeds against no sample that was wrong before. Elsewhere what the model
    said of the clean input decides.
    """

    labels: Mapping[str, int]  # of the samples to tune on
    broken: dict[str, frozenset[str]] = field(default_factory=dict)
    unanswered: dict[str, frozenset[str]] = field(
        default_factory=dict
    )  # an error or a timeout: it may have been broken

    @classmethod
    def of(cls, ledger: Ledger, labels: Mapping[str, int], finished: set[str]) -> "Tally":
        """What a ledger says of cells that need not be run again."""
        tally = cls(labels)
        table = ledger.query(_ROWS, {"samples": list(labels)})
        rows: dict[str, list[dict[str, object]]] = {}
        for row in table.to_pylist():
            if row["cell"] in finished:
                rows.setdefault(row["cell"], []).append(row)
        for cell, of_cell in rows.items():
            tally._take_in(cell, of_cell)
        return tally

    def add(self, result: CellResult) -> None:
        """Take in a cell that has just run."""
        table: pa.Table = result.tables["outcomes"].select(["sample", "outcome", "clean_prediction", "criterion"])
        self._take_in(result.cell, table.to_pylist())

    def _take_in(self, cell: str, rows: Sequence[Mapping[str, object]]) -> None:
        self.broken[cell] = frozenset(str(row["sample"]) for row in rows if self._is_broken(row))
        self.unanswered[cell] = frozenset(str(row["sample"]) for row in rows if row["outcome"] in ("error", "timeout"))

    def _is_broken(self, row: Mapping[str, object]) -> bool:
        right = row["criterion"] == "label" or row["clean_prediction"] == self.labels.get(str(row["sample"]))
        return row["outcome"] == "success" and right


def can_still_win(greatest: float, others: Sequence[float], *, freeze: int) -> bool:
    """Whether a setting can still be among the `freeze` worst.

    `greatest` is the largest share of failures that it can reach, `others` the least that each other setting can end
    with. It is out if `freeze` others end with more than it can reach; a tie is not lost.
    """
    if len(others) < freeze:
        return True
    return greatest >= sorted(others, reverse=True)[freeze - 1]
