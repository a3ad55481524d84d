"""The one writer of a run: collects finished cells, publishes a segment every few seconds, and merges small ones."""

import contextlib
import logging
import math
import time
from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.names import counted
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.maintenance.compacting import merge_neighbours
from advrisk.ledger.segments import last_number, segment_folders, tidy
from advrisk.ledger.sync.remote import UnreachableError, patiently

_LOG = logging.getLogger(__name__)
PUBLISH_EVERY_S = 3.0
LONGEST_S = 60.0  # between two segments, however long the run
PUBLISH_EVERY_BYTES = 64 * 2**20
MERGE_EVERY = 64  # segments
MERGED_BYTES = 32 * 2**20  # merged segments have at most so many, which takes about a second
PATIENCE_S = 3600.0  # with a place elsewhere that does not answer
_BACK_OFF = 4  # a try that failed is followed by a pause of so many times its length


class SegmentWriter:
    """Use as a context manager: whatever was added is published when it ends, also by an exception."""

    def __init__(self, ledger: Ledger, *, every_s: float = PUBLISH_EVERY_S) -> None:
        self._ledger = ledger
        self._every_s = every_s
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_bytes = 0
        self._failed = False  # the last time
        self._try_again_at = -math.inf
        self._began = self._published_at = self._reached_at = time.monotonic()
        tidy(ledger.storage)
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
        that. Where a place elsewhere does not answer, what waits is tried again after an interval, or after a multiple
        of the time that the try took: cells do not wait for it.
        """
        now = time.monotonic()
        interval = max(self._every_s, min((now - self._began) / 100, LONGEST_S))
        late = now - self._published_at >= interval
        if now >= self._try_again_at and (late or self._waiting_bytes >= PUBLISH_EVERY_BYTES):
            try:
                self._publish()
            except UnreachableError as error:
                self._note_failure(error, began=now, interval=interval)

    def _note_failure(self, error: UnreachableError, *, began: float, interval: float) -> None:
        now = time.monotonic()
        if now - self._reached_at > PATIENCE_S:
            raise self._unstored(error) from None
        if not self._failed:
            _LOG.warning("%s. What is finished waits here, and is tried again for up to an hour", error)
        self._failed = True
        self._try_again_at = now + max(interval, _BACK_OFF * (now - began))

    def publish(self) -> None:
        """Make everything added so far durable and visible; a place that does not answer is waited for, for minutes."""
        try:
            patiently(self._publish)
        except UnreachableError as error:
            raise self._unstored(error) from None

    def _unstored(self, error: UnreachableError) -> UnreachableError:
        n_cells = sum(table.num_rows for table in self._waiting.get("cells", ()))
        what = counted(n_cells, "finished cell") if n_cells else "What was finished last"
        them = "them" if n_cells > 1 else "it"
        return UnreachableError(f"{error}. {what} could not be stored there; the same command does {them} again")

    def _publish(self) -> None:
        """Try it once; where that fails, what waits waits on."""
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
        self._failed, self._try_again_at = False, -math.inf

    def _merge_if_many(self) -> None:
        """Merge small neighbours now and then, so that a run of days has few segments; its readers notice nothing.

        What hinders this (a damaged segment, a disk that is nearly full) is no reason to end a run.
        """
        if self._n_small >= MERGE_EVERY:
            self._n_small = 0
            with contextlib.suppress(LedgerError):
                merge_neighbours(self._ledger.storage, MERGED_BYTES)

    def __enter__(self) -> "SegmentWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._publish_last()
            return
        try:
            self._publish()
        except LedgerError as failure:
            told = self._unstored(failure) if isinstance(failure, UnreachableError) else failure
            if not isinstance(error, LedgerError):  # which says the same
                error.add_note(f"what was finished last could not be published: {told}")

    def _publish_last(self) -> None:
        try:
            self.publish()
        except KeyboardInterrupt as ended:  # somebody does not want to wait for it any longer
            if self._waiting:
                ended.add_note(str(self._unstored(UnreachableError("Interrupted while a place was waited for"))))
            raise
