"""The append-only tables of a run: Parquet segments queried with DuckDB. Knows nothing of torch."""

from advrisk.ledger.checking import Inspection, check
from advrisk.ledger.compacting import Compacted, compact
from advrisk.ledger.diffing import LedgerDiff, diff_ledgers
from advrisk.ledger.ledger import EVALUATED_CELL, Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.merging import Merged, merge_ledgers
from advrisk.ledger.mirror import readable_folder, working_folder
from advrisk.ledger.repairing import repair
from advrisk.ledger.tables import OUTCOMES, TABLES, Outcome, constant, table_from
from advrisk.ledger.writer import SegmentWriter

__all__ = [
    "EVALUATED_CELL",
    "OUTCOMES",
    "TABLES",
    "Compacted",
    "Inspection",
    "Ledger",
    "LedgerDiff",
    "Merged",
    "Outcome",
    "SegmentWriter",
    "check",
    "compact",
    "constant",
    "diff_ledgers",
    "locked",
    "merge_ledgers",
    "readable_folder",
    "repair",
    "table_from",
    "working_folder",
]
