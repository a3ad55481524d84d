"""The writer: collects cells, publishes now and then, and always at the end."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import TABLES, Ledger, SegmentWriter, Storage, segments, table_from, writer
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.segments import all_segments, segment_folders
from advrisk.ledger.sync import remote
from advrisk.ledger.sync.remote import UnreachableError

Tables = dict[str, Any]


class Clock:
    """Time that passes only when it is told to."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(writer, "time", made)
    monkeypatch.setattr(remote, "time", made)
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


def test_the_interval_grows_to_a_minute_at_most(ledger: Ledger, cell: Callable[..., Tables], clock: Clock) -> None:
    with SegmentWriter(ledger, every_s=3) as open_writer:
        clock.now += 3 * 24 * 3600
        open_writer.add(cell("c1"))
        assert published(ledger) == [{"c1"}]
        clock.now += 59
        open_writer.add(cell("c2"))
        assert published(ledger) == [{"c1"}]
        clock.now += 1.1
        open_writer.publish_if_due()
        assert published(ledger) == [{"c1"}, {"c2"}]


def test_a_disk_that_has_room_again_gets_what_waited(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    open_writer = SegmentWriter(ledger, every_s=0)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(LedgerError, match="No space left"):
            open_writer.add(cell("c1"))
    open_writer.publish()
    assert published(ledger) == [{"c1"}]


@pytest.mark.parametrize("call", range(4))
def test_an_interrupt_while_it_publishes_neither_loses_nor_doubles(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Before and after the segment is durable, and before and after it has its name."""
    n_calls = 0

    def interrupted(real: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
        def act(*given: Any, **named: Any) -> Any:
            nonlocal n_calls
            n_calls += 1
            done = real(*given, **named) if after or n_calls - 1 != call // 2 else None
            if n_calls - 1 == call // 2:
                raise KeyboardInterrupt
            return done

        return act

    monkeypatch.setattr(segments, "make_durable", interrupted(segments.make_durable, after=bool(call % 2)))
    with pytest.raises(KeyboardInterrupt), SegmentWriter(ledger, every_s=0) as open_writer:
        open_writer.add(cell("c1"))
    assert published(ledger) == [{"c1"}]


# Places elsewhere


class Elsewhere(Storage):
    """Takes segments, or does not answer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.answers, self.asked = True, 0
        self.back_at = float("inf")
        self.names: set[str] = set()
        self.clock: Clock | None = None  # where it takes long to say nothing

    def push(self, segment: Path) -> None:
        self.asked += 1
        if self.clock and self.clock.now >= self.back_at:
            self.answers = True
        if not self.answers:
            if self.clock:
                self.clock.now += 10
            raise UnreachableError("s3://bucket: cannot be reached")
        self.names.add(segment.name)

    def drop(self, names: Sequence[str]) -> None:
        self.names -= set(names)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path / "run")


@pytest.fixture
def stored(elsewhere: Elsewhere) -> Ledger:
    return Ledger.open(elsewhere, create=True)


def written(ledger: Ledger, *tables: Tables, end: type[BaseException] | None = None) -> None:
    with SegmentWriter(ledger, every_s=1e9) as open_writer:
        for one in tables:
            open_writer.add(one)
        if end:
            raise end


def test_what_could_not_be_put_elsewhere_is_put_there_at_the_next_interval(
    stored: Ledger,
    cell: Callable[..., Tables],
    clock: Clock,
    elsewhere: Elsewhere,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    size = sum(table.nbytes for table in cell("c1").values())
    monkeypatch.setattr(writer, "PUBLISH_EVERY_BYTES", 3 * size)
    with SegmentWriter(stored, every_s=3) as open_writer:
        elsewhere.answers = False
        for name in ("c1", "c2", "c3", "c4", "c5"):
            open_writer.add(cell(name))
        assert elsewhere.asked == 1, "it is not asked again with every cell"
        clock.now += 3.1
        open_writer.publish_if_due()
        assert (elsewhere.asked, published(stored)) == (2, []), "it does not count as done"
        assert [record.getMessage().partition(". ")[0] for record in caplog.records] == [
            "s3://bucket: cannot be reached"
        ], "and is told once"
        elsewhere.answers = True
        clock.now += 3.1
        open_writer.publish_if_due()
        assert published(stored) == [{"c1", "c2", "c3", "c4", "c5"}]
    assert elsewhere.names == {segment.name for segment in segment_folders(stored.path)}


def test_a_place_that_stays_away_ends_the_run(
    stored: Ledger, cell: Callable[..., Tables], clock: Clock, elsewhere: Elsewhere
) -> None:
    elsewhere.answers = False
    open_writer = SegmentWriter(stored, every_s=3)
    open_writer.add(cell("c1"))
    clock.now += 3000
    open_writer.publish_if_due()
    clock.now += 1000
    with pytest.raises(LedgerError, match=r"cannot be reached\. 2 finished cells could not be stored there; the same"):
        open_writer.add(cell("c2"))


def test_cells_do_not_wait_for_a_place_that_takes_long_to_say_nothing(
    stored: Ledger, cell: Callable[..., Tables], clock: Clock, elsewhere: Elsewhere
) -> None:
    elsewhere.answers, elsewhere.clock = False, clock
    open_writer = SegmentWriter(stored, every_s=3)
    clock.now += 4
    began = clock.now
    n_cells = 0
    while clock.now - began < 600:
        n_cells += 1
        clock.now += 1
        open_writer.add(cell(f"c{n_cells}", [f"s{n_cells}"]))
    assert n_cells > 0.75 * 600, "a cell took a second"
    assert elsewhere.asked > 8
    elsewhere.answers = True
    clock.now += 60
    open_writer.publish_if_due()
    assert [len(cells) for cells in published(stored)] == [n_cells]


def test_at_the_end_a_place_is_waited_for(
    stored: Ledger, cell: Callable[..., Tables], clock: Clock, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.answers, elsewhere.clock = False, clock
    with SegmentWriter(stored, every_s=1e9) as open_writer:
        open_writer.add(cell("c1"))
        monkeypatch.setattr(elsewhere, "back_at", clock.now + 200)
    assert published(stored) == [{"c1"}]


def test_what_could_not_be_stored_in_the_end_is_counted(
    stored: Ledger, cell: Callable[..., Tables], clock: Clock, elsewhere: Elsewhere
) -> None:
    elsewhere.answers, began = False, clock.now
    with pytest.raises(UnreachableError, match=r"2 finished cells could not be stored there; .* does them again"):
        written(stored, cell("c1"), cell("c2"))
    assert 240 < clock.now - began <= 300
    scores = table_from("scores", {"cell": ["c1"], "sample": ["s1"], "detector": ["d"], "score": [0.0]})
    with pytest.raises(UnreachableError, match=r"What was finished last could not be stored there; .* does it again"):
        written(stored, {"scores": scores})


def test_who_interrupts_is_not_kept_waiting_and_told_what_is_missing(
    stored: Ledger, cell: Callable[..., Tables], clock: Clock, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.answers, began = False, clock.now
    with pytest.raises(KeyboardInterrupt) as ended:
        written(stored, cell("c1"), end=KeyboardInterrupt)
    assert "1 finished cell could not be stored there" in ended.value.__notes__[0]
    assert clock.now == began

    def impatient(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clock, "sleep", impatient)
    with pytest.raises(KeyboardInterrupt) as ended:
        written(stored, cell("c1"))
    assert "1 finished cell could not be stored there" in ended.value.__notes__[0]


# Merging meanwhile


def test_small_segments_are_merged_while_the_run_goes_on(
    stored: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables], elsewhere: Elsewhere, clock: Clock
) -> None:
    stored.append(arms(("plain", "push", "r1")) | cell("first", ["first"]))
    reader = Ledger.open(stored.path)
    reader.query("SELECT 1")
    with SegmentWriter(stored, every_s=0) as open_writer:
        for number in range(100):
            open_writer.add(cell(f"c{number}", [f"s{number}"]))
            assert len(all_segments(stored.path)) <= writer.MERGE_EVERY
    assert len(segment_folders(stored.path)) == 1 + 37
    assert Ledger.open(stored.path).query("SELECT DISTINCT sample FROM outcomes").num_rows == 101
    assert reader.outcomes().num_rows == 64, "what was merged with what it knew"
    assert elsewhere.names == {segment.name for segment in segment_folders(stored.path)}
    assert check(stored.path).findings == []


def test_what_hinders_merging_ends_no_run(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MERGE_EVERY", 3)
    with SegmentWriter(ledger, every_s=0) as open_writer:
        open_writer.add(cell("c1"))
        file = segment_folders(ledger.path)[0] / "outputs.parquet"
        file.write_bytes(file.read_bytes()[:-1])
        for name in ("c2", "c3", "c4"):
            open_writer.add(cell(name))
    assert len(segment_folders(ledger.path)) == 4
    assert [finding.kind for finding in check(ledger.path).findings] == ["truncated"]


class Crash(BaseException):
    """The process ends here."""


def test_whenever_it_is_killed_each_published_row_is_there_once(
    ledger: Ledger, cell: Callable[..., Tables], clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that changes the disk is a step; the process ends before one of them."""
    monkeypatch.setattr(writer, "MERGE_EVERY", 3)
    step, n_steps = 0, 1
    while step < n_steps:
        copy = Ledger.open(tmp_path / f"at-{step}", create=True)
        done, n_steps = _killed_at(step, copy, cell, monkeypatch)
        seen = published(copy)
        assert sum(map(len, seen)) == len(set().union(*seen)), "no row twice"
        assert {f"c{number}" for number in range(done)} <= set().union(*seen)
        SegmentWriter(copy)
        assert published(copy) == seen
        assert all_segments(copy.path) == segment_folders(copy.path)
        step += 5
    assert n_steps > 60


def _killed_at(
    step: int, ledger: Ledger, cell: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int]:
    """How many cells were published before that step, and how many steps there would be at least."""
    count, done = 0, 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            if count == step:
                raise Crash
            count += 1
            return real(*given, **named)

        return call

    with monkeypatch.context() as patch:
        for name in ("fsync", "rename", "mkdir", "unlink", "rmdir"):
            patch.setattr(os, name, counted(getattr(os, name)))
        try:
            open_writer = SegmentWriter(ledger, every_s=0)
            for number in range(5):
                open_writer.add(cell(f"c{number}", [f"s{number}"]))
                done += 1
        except Crash:
            return done, count + 6
    return done, count
