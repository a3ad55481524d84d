"""The one writer of a run: collects finished cells, publishes a segment every few seconds, and merges small ones."""

import contextlib
import logging
import time
from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.ledger.compacting import merge_neighbours
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.remote import UnreachableError
from advrisk.ledger.segments import last_number, segment_folders, tidy

_LOG = logging.getLogger(__name__)
PUBLISH_EVERY_S = 3.0
LONGEST_S = 60.0  # between two segments, however long the run
PUBLISH_EVERY_BYTES = 64 * 2**20
MERGE_EVERY = 64  # segments
MERGED_BYTES = 32 * 2**20  # merged segments have at most so many, which takes about a second
PATIENCE_S = 3600.0  # with a place elsewhere that does not answer


class SegmentWriter:
    """Use as a context manager: whatever was added is published when it ends, also by an exception."""

    def __init__(self, ledger: Ledger, *, every_s: float = PUBLISH_EVERY_S) -> None:
        self._ledger = ledger
        self._every_s = every_s
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_bytes = self._failed_bytes = 0
        self._began = self._published_at = self._reached_at = time.monotonic()
        tidy(ledger.path)
        self._n_small = len(segment_folders(ledger.path))  # maybe; a merge counts them

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Take the tables of a finished cell."""
        for name, table in tables.items():
            self._waiting.setdefault(name, []).append(table)
            self._waiting_bytes += table.nbytes
        self.publish_if_due()

    def publish_if_due(self) -> None:
        """Publish if enough time has passed or enough has gathered.

        The interval grows to a hundredth of the run's time, and to a minute at most: a kill never costs more than
        that. Where a place elsewhere does not answer, what waits is published at the next interval.
        """
        now = time.monotonic()
        interval = max(self._every_s, min((now - self._began) / 100, LONGEST_S))
        late = now - self._published_at >= interval
        if late or self._waiting_bytes - self._failed_bytes >= PUBLISH_EVERY_BYTES:
            try:
                self.publish()
            except UnreachableError as error:
                if not self._failed_bytes:
                    _LOG.warning("%s. What is finished waits here, and is tried again for up to an hour", error)
                self._failed_bytes = self._waiting_bytes
                if time.monotonic() - self._reached_at > PATIENCE_S:
                    raise

    def publish(self) -> None:
        """Make everything added so far durable and visible; where that fails, it waits on."""
        self._published_at = time.monotonic()
        if self._waiting:
            self._append_waiting()
            self._n_small += 1
            self._merge_if_many()
        self._reached_at = time.monotonic()

    def _append_waiting(self) -> None:
        """Publish what waits once, also if somebody interrupts just then: it waits on unless its segment is there."""
        waiting, n_bytes, last = self._waiting, self._waiting_bytes, last_number(self._ledger.path)
        self._waiting, self._waiting_bytes = {}, 0
        try:
            self._ledger.append({name: pa.concat_tables(parts).unify_dictionaries() for name, parts in waiting.items()})
        except BaseException:
            if last_number(self._ledger.path) == last:
                self._waiting, self._waiting_bytes = waiting, n_bytes
            raise
        self._failed_bytes = 0

    def _merge_if_many(self) -> None:
        """Merge small neighbours now and then, so that a run of days has few segments; its readers notice nothing.

        What hinders this (a damaged segment, a disk that is nearly full) is no reason to end a run.
        """
        if self._n_small >= MERGE_EVERY:
            self._n_small = 0
            with contextlib.suppress(LedgerError):
                merge_neighbours(self._ledger.path, MERGED_BYTES)

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
            if not isinstance(error, LedgerError):  # which says the same
                error.add_note(f"and what was finished last could not be published: {failure}")
