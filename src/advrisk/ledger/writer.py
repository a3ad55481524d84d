"""The one writer of a run: collects finished cells and publishes a segment every few seconds."""

import time
from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.segments import tidy

PUBLISH_EVERY_S = 3.0
PUBLISH_EVERY_BYTES = 64 * 2**20


class SegmentWriter:
    """Use as a context manager: whatever was added is published when it ends, also by an exception."""

    def __init__(self, ledger: Ledger, *, every_s: float = PUBLISH_EVERY_S) -> None:
        self._ledger = ledger
        self._every_s = every_s
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_bytes = 0
        self._began = self._published_at = time.monotonic()
        tidy(ledger.path)

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Take the tables of a finished cell."""
        for name, table in tables.items():
            self._waiting.setdefault(name, []).append(table)
            self._waiting_bytes += table.nbytes
        self.publish_if_due()

    def publish_if_due(self) -> None:
        """Publish if enough time has passed or enough has gathered.

        The interval grows to a hundredth of the run's time, so that a run of days has hundreds of segments rather
        than tens of thousands; a kill never costs more than that.
        """
        now = time.monotonic()
        late = now - self._published_at >= max(self._every_s, (now - self._began) / 100)
        if late or self._waiting_bytes >= PUBLISH_EVERY_BYTES:
            self.publish()

    def publish(self) -> None:
        """Make everything added so far durable and visible."""
        self._published_at = time.monotonic()
        if not self._waiting:
            return
        tables = {name: pa.concat_tables(parts).unify_dictionaries() for name, parts in self._waiting.items()}
        self._waiting, self._waiting_bytes = {}, 0
        self._ledger.append(tables)

    def __enter__(self) -> "SegmentWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.publish()
        except LedgerError as failure:
            if error is None:
                raise
            error.add_note(f"and what was finished last could not be published: {failure}")
