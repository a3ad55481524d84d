"""The writer: collects cells, publishes now and then, and always at the end."""

from collections.abc import Callable
from typing import Any

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import TABLES, Ledger, SegmentWriter, writer
from advrisk.ledger.segments import segment_folders

Tables = dict[str, Any]


class Clock:
    """Time that passes only when it is told to."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(writer, "time", made)
    return made


def published(ledger: Ledger) -> list[set[str]]:
    """The cells of each segment."""
    query = "SELECT filename, list(cell) AS cells FROM all_cells GROUP BY filename ORDER BY filename"
    return [set(row["cells"]) for row in Ledger.open(ledger.path).query(query).to_pylist()]


def test_cells_are_gathered_into_one_segment(ledger: Ledger, cell: Callable[..., Tables], clock: Clock) -> None:
    with SegmentWriter(ledger, every_s=3) as open_writer:
        for number in range(5):
            open_writer.add(cell(f"c{number}"))
        assert published(ledger) == [], "a cell counts as done once published"
    assert published(ledger) == [{"c0", "c1", "c2", "c3", "c4"}]


def test_a_segment_is_published_when_it_is_due(ledger: Ledger, cell: Callable[..., Tables], clock: Clock) -> None:
    with SegmentWriter(ledger, every_s=3) as open_writer:
        open_writer.add(cell("c1"))
        clock.now += 2.9
        open_writer.add(cell("c2"))
        assert published(ledger) == []
        clock.now += 0.2
        open_writer.publish_if_due()
        assert published(ledger) == [{"c1", "c2"}]
        clock.now += 2.9
        open_writer.add(cell("c3"))
        assert published(ledger) == [{"c1", "c2"}], "the time counts from the last segment"
        clock.now += 0.2
        open_writer.add(cell("c4"))
        assert published(ledger) == [{"c1", "c2"}, {"c3", "c4"}]
    assert len(segment_folders(ledger.path)) == 2, "nothing was left to publish"


def test_a_segment_is_published_when_much_has_gathered(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(table.nbytes for table in cell("c1").values())
    monkeypatch.setattr(writer, "PUBLISH_EVERY_BYTES", 3 * size)
    with SegmentWriter(ledger, every_s=1e9) as open_writer:
        for number in range(7):
            open_writer.add(cell(f"c{number}"))
        assert published(ledger) == [{"c0", "c1", "c2"}, {"c3", "c4", "c5"}]
    assert published(ledger) == [{"c0", "c1", "c2"}, {"c3", "c4", "c5"}, {"c6"}]


def test_nothing_added_nothing_published(ledger: Ledger, clock: Clock) -> None:
    with SegmentWriter(ledger, every_s=0) as open_writer:
        open_writer.publish_if_due()
        open_writer.publish()
    assert segment_folders(ledger.path) == []


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_was_added_is_published_however_it_ends(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, end: type[BaseException]
) -> None:
    def ends() -> None:
        with SegmentWriter(ledger) as open_writer:
            open_writer.add(cell("c1"))
            raise end

    with pytest.raises(end):
        ends()
    assert published(ledger) == [{"c1"}]


def test_cells_with_different_names_and_tables_fit_into_one_segment(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables], clock: Clock
) -> None:
    """Each cell brings dictionaries of its own, and not every cell has every table."""
    with SegmentWriter(ledger) as open_writer:
        open_writer.add(cell("c1", ["s1"], model="a") | arms(("a", "push", "r1"), ("b", "pull", "r1")))
        labels_only = cell("c2", ["s2", "s3"], model="b", arm="pull", outcome="resisted", d_linf=None)
        del labels_only["outputs"]
        open_writer.add(labels_only)
    read = Ledger.open(ledger.path)
    assert read.outcomes(["model", "arm", "sample", "outcome", "d_linf"]).to_pylist() == [
        {"model": "a", "arm": "push", "sample": "s1", "outcome": "success", "d_linf": 0.1},
        {"model": "b", "arm": "pull", "sample": "s2", "outcome": "resisted", "d_linf": None},
        {"model": "b", "arm": "pull", "sample": "s3", "outcome": "resisted", "d_linf": None},
    ]
    assert read.query("SELECT sample FROM outputs")["sample"].to_pylist() == ["s1"]


def test_a_segment_that_cannot_be_written_is_told_once(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(LedgerError, match="No space left"), SegmentWriter(ledger, every_s=0) as open_writer:
            open_writer.add(cell("c1"))
    assert published(ledger) == []


def test_a_table_that_does_not_fit_is_refused(ledger: Ledger, cell: Callable[..., Tables], clock: Clock) -> None:
    wrong = cell("c1")["outcomes"].drop_columns("message")
    assert wrong.schema != TABLES["outcomes"]
    with pytest.raises(LedgerError, match="outcomes: these columns"), SegmentWriter(ledger) as open_writer:
        open_writer.add({"outcomes": wrong})
