"""The append-only tables of a run: Parquet segments queried with DuckDB. Knows nothing of torch."""

from advrisk.ledger.ledger import EVALUATED_CELL, Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.mirror import readable_folder, working_folder
from advrisk.ledger.tables import OUTCOMES, TABLES, Outcome, constant, table_from
from advrisk.ledger.writer import SegmentWriter

__all__ = [
    "EVALUATED_CELL",
    "OUTCOMES",
    "TABLES",
    "Ledger",
    "Outcome",
    "SegmentWriter",
    "constant",
    "locked",
    "readable_folder",
    "table_from",
    "working_folder",
]
