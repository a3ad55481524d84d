"""The append-only tables of a run: Parquet segments queried with DuckDB. Knows nothing of torch."""

from advrisk.ledger.ledger import EVALUATED_CELL, Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.maintenance.checking import Inspection, check
from advrisk.ledger.maintenance.compacting import Compacted, compact
from advrisk.ledger.maintenance.diffing import LedgerDiff, diff_ledgers
from advrisk.ledger.maintenance.merging import Merged, merge_ledgers
from advrisk.ledger.maintenance.repairing import repair
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.copies import readable_storage, writable_storage
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
    "Storage",
    "check",
    "compact",
    "constant",
    "diff_ledgers",
    "locked",
    "merge_ledgers",
    "readable_storage",
    "repair",
    "table_from",
    "writable_storage",
]
