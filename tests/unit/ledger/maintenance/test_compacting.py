"""Compacting: fewer segments, the same rows, whoever reads and whenever it is stopped."""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import TABLES, Ledger, SegmentWriter, locked, manifest, table_from
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.compacting import Compacted, compact
from advrisk.ledger.segments import all_segments, segment_folders

Tables = dict[str, Any]
GOLDEN = Path(__file__).parents[3] / "golden"


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def filled(ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]) -> Ledger:
    """Twelve segments: two recipes, a cell that was run twice, scores before and after that, changed samples."""
    ledger.append(arms(("plain", "push", "r1"), ("plain", "pull", "p1")) | sample_rows("a"))
    for number in range(3):
        ledger.append(cell(f"c{number}", [f"s{2 * number}", f"s{2 * number + 1}"]))
    ledger.append(cell("c1", ["s2", "s3"], outcome="error", d_linf=None))
    ledger.append(scores("c0", "c1"))
    ledger.append(cell("old", arm="pull", recipe="p0") | arms(("plain", "pull", "p1")))
    ledger.append(cell("c1", ["s2", "s3"], d_linf=0.7) | sample_rows("b"))
    ledger.append(scores("c1", "r1"))
    ledger.append(cell("new", arm="pull", recipe="p1"))
    ledger.append({"measures": table_from("measures", {"cell": ["c1"], "sample": ["s2"], "value": [None]})})
    ledger.append({"measures": table_from("measures", {"cell": ["c1"], "sample": ["s2"], "value": [4.0]})})
    return Ledger.open(ledger.path)


def sample_rows(label: str) -> Tables:
    strata = json.dumps({"light": label})
    return {"samples": table_from("samples", {"sample": ["s0", "s1"], "strata": [strata, strata]})}


def scores(*cells: str) -> Tables:
    columns = {"cell": cells, "sample": ["s2"] * len(cells), "detector": ["d"] * len(cells)}
    return {"scores": table_from("scores", columns | {"score": [0.5] * len(cells)})}


def seen(ledger: Ledger, tables: Sequence[str] = tuple(TABLES)) -> dict[str, str]:
    """Everything that a reader sees, as text, because NaN differs from itself."""
    read = Ledger.open(ledger.path)
    columns = {name: ", ".join(TABLES[name].names) for name in tables}
    told = {name: repr(read.query(f"SELECT {columns[name]} FROM {name} ORDER BY ALL").to_pylist()) for name in tables}
    finished = [sorted(read.finished_cells(without_errors=strictly)) for strictly in (False, True)]
    return told | {"finished": repr(finished)}


def test_readers_see_the_same_rows_in_fewer_segments(filled: Ledger) -> None:
    before = seen(filled)
    assert compact(filled.path) == Compacted(12, 1, n_void=2 * (2 + 2 + 1) + 1)
    assert seen(filled) == before
    assert compact(filled.path) == Compacted(1, 1, 0), "there is nothing left to do"
    assert not check(filled.path).findings


@pytest.mark.parametrize("largest_mb", [0.02, 0.04])
def test_neighbours_are_merged_up_to_a_size_and_stay_in_order(filled: Ledger, largest_mb: float) -> None:
    before = seen(filled)
    assert 1 < compact(filled.path, largest_mb=largest_mb).n_after < 12
    assert seen(filled) == before
    sizes = [sum(file.stat().st_size for file in one.iterdir()) for one in segment_folders(filled.path)]
    assert max(sizes) < 1.2 * largest_mb * 2**20
    compact(filled.path)
    assert seen(filled) == before


def test_who_writes_next_goes_on_after_it(filled: Ledger, cell: Callable[..., Tables]) -> None:
    compact(filled.path)
    with SegmentWriter(filled) as writer:
        writer.add(cell("c2", ["s4", "s5"], d_linf=0.9))
    assert [one.name[:8] for one in segment_folders(filled.path)] == ["00000012", "00000013"]
    found = Ledger.open(filled.path).outcomes(["cell", "d_linf"], where="cell = 'c2'")
    assert found["d_linf"].to_pylist() == [0.9, 0.9]


def test_a_reader_that_opened_before_sees_what_it_saw(filled: Ledger, cell: Callable[..., Tables]) -> None:
    before = filled.query("FROM outcomes ORDER BY ALL").to_pylist()
    unopened = Ledger.open(filled.path)
    cells = filled.finished_cells()
    filled.append(cell("later", ["s9"]))
    compact(filled.path, largest_mb=0.02)
    compact(filled.path, largest_mb=0.04)
    assert unopened.finished_cells() == cells | {"later"}
    rows = filled.query("FROM outcomes ORDER BY ALL").to_pylist()
    assert [row for row in rows if row["cell"] != "later"] == before
    assert len(rows) == len(before) + 1, "it lies in one segment with rows that the reader knew"
    assert filled.finished_cells() == cells | {"later"}


def test_a_segment_that_came_later_stays_unseen_where_it_was_not_merged(
    filled: Ledger, cell: Callable[..., Tables]
) -> None:
    cells = filled.finished_cells()
    compact(filled.path)
    Ledger.open(filled.path).append(cell("later", ["s9"]))
    assert filled.finished_cells() == cells


def test_what_was_taken_away_is_told(filled: Ledger) -> None:
    filled.query("SELECT 1")
    lost = segment_folders(filled.path)[1]
    shutil.rmtree(lost)
    with pytest.raises(LedgerError, match=f"{lost.name} was taken away while it was read; open the ledger again"):
        filled.query("FROM outcomes")


def test_it_waits_for_no_writer(filled: Ledger) -> None:
    with locked(filled.path.parent), pytest.raises(LedgerError, match="is writing to this folder"):
        compact(filled.path)


def test_damage_is_not_copied_into_a_segment_that_looks_whole(filled: Ledger) -> None:
    file = segment_folders(filled.path)[3] / "outcomes.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    before = [segment.name for segment in segment_folders(filled.path)]
    with pytest.raises(LedgerError, match=rf"{file}: was altered.*ledger check RUN --repair"):
        compact(filled.path)
    assert [segment.name for segment in segment_folders(filled.path)] == before


@pytest.mark.parametrize("version", ["v1", "v2", "v3", "v4"])
def test_ledgers_of_earlier_versions_read_the_same(tmp_path: Path, version: str) -> None:
    shutil.copytree(GOLDEN / f"ledger-{version}", tmp_path / "run")
    ledger = Ledger.open(tmp_path / "run")
    before = seen(ledger)
    assert compact(tmp_path / "run").n_after <= 3, "a cell whose outcomes are gone stays apart"
    assert seen(ledger) == before


# Killed between any two steps


@contextmanager
def stopping_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every call that changes the disk is a step; the process ends before that one."""
    done: list[str] = []
    with monkeypatch.context() as patch:
        for name in ("fsync", "rename", "replace", "mkdir", "unlink", "rmdir"):
            patch.setattr(os, name, _counted(getattr(os, name), name, done, step))
        yield done


def _counted(real: Callable[..., Any], name: str, done: list[str], step: int) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        if len(done) == step:
            raise Crash
        done.append(name)
        return real(*given, **named)

    return call


def kill_at_every_step(
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    largest_mb: float,
    told: Callable[[Ledger], Any],
) -> None:
    before = told(ledger)
    with stopping_at(10**9, monkeypatch) as steps:
        copy = shutil.copytree(ledger.path.parent, tmp_path / "count")
        steps.clear()
        compact(copy, largest_mb=largest_mb)
    assert set(steps) == {"fsync", "rename", "replace", "mkdir", "unlink", "rmdir"}
    for step in range(len(steps)):
        copy = shutil.copytree(ledger.path.parent, tmp_path / f"at-{step}")
        with stopping_at(step, monkeypatch), pytest.raises(Crash):
            compact(copy, largest_mb=largest_mb)
        assert told(Ledger.open(copy)) == before, steps[step]
        assert not check(copy).damaged, steps[step]
        compact(copy)
        assert len(all_segments(copy / "ledger")) == 1
        assert told(Ledger.open(copy)) == before, steps[step]
        assert {entry.name for entry in (copy / "ledger").iterdir()} == {"segments", "history.jsonl"}
        assert check(copy).findings == [], steps[step]


def rows_in_files(ledger: Ledger) -> list[Any]:
    """The outcome rows in the segments that readers look at, in order."""
    files = [segment / "outcomes.parquet" for segment in segment_folders(ledger.path)]
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_whenever_it_is_killed_each_row_is_there_once_and_the_next_one_finishes(
    ledger: Ledger, cell: Callable[..., Tables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("c1", "c2", "c3"):
        ledger.append(cell(name))
    kill_at_every_step(ledger, tmp_path, monkeypatch, largest_mb=1.0, told=rows_in_files)


@pytest.mark.slow
@pytest.mark.parametrize("largest_mb", [0.02, 1.0])
def test_whenever_it_is_killed_with_many_segments(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest_mb: float
) -> None:
    kill_at_every_step(filled, tmp_path, monkeypatch, largest_mb=largest_mb, told=seen)


def test_a_segment_that_is_merged_while_a_reader_catches_up_is_looked_for_again(
    ledger: Ledger, cell: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        ledger.append(cell(f"c{number}", [f"s{number}"]))
    ledger.append({"arms": table_from("arms", {"model": ["plain"], "arm": ["push"], "recipe": ["r1"]})})
    before = Ledger.open(ledger.path)
    before.query("SELECT 1")
    assert compact(ledger.path).n_after == 1
    gone = iter([True])

    def read_replaces(segment: Path) -> Any:
        if next(gone, False):
            raise FileNotFoundError
        return manifest.read_replaces(segment)

    monkeypatch.setattr("advrisk.ledger.ledger.read_replaces", read_replaces)
    assert before.query("SELECT count(*) AS n FROM outcomes")["n"].to_pylist() == [3]
    assert next(gone, None) is None


def test_readers_that_open_meanwhile_see_every_row_once(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    for number in range(12):
        ledger.append(cell(f"c{number}", [f"s{number}"]))
    ledger.append({"arms": table_from("arms", {"model": ["plain"], "arm": ["push"], "recipe": ["r1"]})})
    size = sum(file.stat().st_size for file in segment_folders(ledger.path)[0].iterdir()) / 2**20
    merged = threading.Event()

    def merge() -> None:
        try:
            for factor in (2.5, 5, 1000):
                compact(ledger.path, largest_mb=factor * size)
        finally:
            merged.set()

    before, counts = Ledger.open(ledger.path), []
    before.query("SELECT 1")
    worker = threading.Thread(target=merge)
    worker.start()
    while not merged.is_set() or len(counts) < 6:
        for reader in (Ledger.open(ledger.path), before):
            counts.append(
                reader.query("SELECT count(*) AS n, count(DISTINCT sample) AS d FROM outcomes").to_pylist()[0]
            )
    worker.join()
    assert len(segment_folders(ledger.path)) == 1
    assert all(row == {"n": 12, "d": 12} for row in counts)
