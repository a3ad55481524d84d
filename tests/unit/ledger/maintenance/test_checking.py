"""Checking a ledger: every kind of damage is found and named, and a repair takes out that and nothing else."""

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, Storage, locked, table_from
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs
from advrisk.ledger.maintenance import checking, counting, repairing
from advrisk.ledger.maintenance.checking import Inspection, check
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.maintenance.deleting import delete_inputs
from advrisk.ledger.maintenance.repairing import repair
from advrisk.ledger.segments import segment_folders, tidy
from tests.stamps import as_of_an_earlier_version

Tables = dict[str, Any]
CELLS = ("c1", "c2", "c3", "c4")


@pytest.fixture
def run(ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]) -> Path:
    """A question, four cells in two segments with inputs kept, and scores of all of them."""
    home = ledger.path.parent
    samples = {"sample": ["s1", "s2"], "shard": ["g", "g"], "place": [0, 1], "split": ["evaluate"] * 2}
    ledger.append(arms(("plain", "push", "r1")) | {"samples": table_from("samples", samples)})
    write_inputs(shard_inputs(home, "g"), ["s1", "s2"], np.zeros((2, 3)))
    for pair in (CELLS[:2], CELLS[2:]):
        made = [in_shard(cell(name, repeat=int(name[1]))) for name in pair]
        for name in pair:
            write_inputs(cell_inputs(home, name), ["s1", "s2"], np.ones((2, 3)))
        ledger.append({name: pa.concat_tables([one[name] for one in made]) for name in made[0]})
    scores = {"cell": CELLS, "sample": ["s1"] * 4, "detector": ["d"] * 4, "score": [0.1, 0.2, 0.3, 0.4]}
    ledger.append({"scores": table_from("scores", scores)})
    return home


def in_shard(tables: Tables) -> Tables:
    cells = tables["cells"]
    place = cells.schema.get_field_index("shard")
    column = pa.array(["g"]).dictionary_encode()
    return tables | {"cells": cells.set_column(place, cells.schema.field(place), column)}


def segments(run: Path) -> list[Path]:
    return segment_folders(run / "ledger")


def flip(path: Path, place: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    path.write_bytes(data)


def kinds(found: Inspection) -> list[str]:
    return [finding.kind for finding in found.findings]


def cells(run: Path) -> set[str]:
    return Ledger.open(run).finished_cells()


def scored(run: Path) -> set[str]:
    return set(Ledger.open(run).query("SELECT cell FROM all_scores")["cell"].to_pylist())


def test_a_sound_ledger(run: Path) -> None:
    found = check(run)
    assert (found.findings, found.damaged) == ([], False)
    assert (len(found.segments), found.n_cells, found.n_rows, found.n_inputs, found.n_without_digest) == (4, 4, 8, 5, 0)
    assert repair(run).findings == []
    assert not (run / "ledger" / "aside").exists()


def test_every_flipped_byte_is_found(run: Path) -> None:
    file = segments(run)[1] / "outcomes.parquet"
    whole = file.read_bytes()
    for place in np.linspace(0, 1, 4):
        flip(file, float(place))
        (finding,) = check(run).findings
        assert (finding.kind, finding.place, finding.damage) == ("altered", str(file), True)
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("damage", "kind", "left"),
    [
        (lambda segment: flip(segment / "outcomes.parquet"), "altered", {"c3", "c4"}),
        (lambda segment: flip(segment / "outputs.parquet"), "altered", {"c3", "c4"}),
        (lambda segment: flip(segment / "cells.parquet"), "altered", {"c3", "c4"}),
        (lambda segment: flip(segment / "segment.json"), "unreadable", {"c3", "c4"}),
        (lambda segment: (segment / "segment.json").write_text("{"), "unreadable", {"c3", "c4"}),
        (lambda segment: (segment / "segment.json").unlink(), "missing", {"c3", "c4"}),
        (lambda segment: (segment / "outcomes.parquet").unlink(), "missing", {"c3", "c4"}),
        (lambda segment: (segment / "cells.parquet").write_bytes(b""), "truncated", {"c3", "c4"}),
        (
            lambda segment: (segment / "outcomes.parquet").write_bytes(
                (segment / "outcomes.parquet").read_bytes()[:99]
            ),
            "truncated",
            {"c3", "c4"},
        ),
    ],
)
def test_damaged_cells_are_taken_out_and_nothing_else(
    run: Path, damage: Callable[[Path], None], kind: str, left: set[str]
) -> None:
    segment = segments(run)[1]
    damage(segment)
    kept = {file.name: file.read_bytes() for file in segment.iterdir()}
    found = check(run)
    assert found.damaged
    assert found.findings[0].kind in (kind, "altered"), found.findings
    assert "`advrisk run` then does its cells again and nothing else" in found.findings[0].remedy
    repair(run)
    assert cells(run) == left
    assert scored(run) == left, "scores of what is gone are void"
    assert Ledger.open(run).query("SELECT sample FROM samples").num_rows == 2
    aside = run / "ledger" / "aside" / segment.name
    assert {file.name: file.read_bytes() for file in aside.iterdir()} == kept, "nothing is deleted"
    assert not check(run).damaged


def test_a_question_is_kept_where_its_own_file_is_whole(run: Path) -> None:
    flip(segments(run)[0] / "arms.parquet")
    repair(run)
    read = Ledger.open(run)
    assert read.query("FROM samples").num_rows == 2
    assert read.query("FROM all_arms").num_rows == 0, "the next run writes it down again"
    assert read.finished_cells() == set(CELLS)
    assert scored(run) == set(CELLS)


def test_damaged_scores_cost_no_cell(run: Path) -> None:
    flip(segments(run)[3] / "scores.parquet")
    repair(run)
    assert (cells(run), scored(run)) == (set(CELLS), set())


def test_a_copied_segment_is_a_duplicate(run: Path) -> None:
    copy = segments(run)[1].with_name("00000009-abcdef01")
    shutil.copytree(segments(run)[1], copy)
    (finding,) = check(run).findings
    assert (finding.kind, finding.place) == ("duplicate", str(copy))
    repair(run)
    assert (run / "ledger" / "aside" / copy.name).is_dir()
    assert (cells(run), scored(run), check(run).findings) == (set(CELLS), set(CELLS), [])


@pytest.mark.parametrize("change", ["fewer", "more", "none", "no cell"])
def test_cells_with_other_rows_than_planned(
    ledger: Ledger, cell: Callable[..., Tables], run: Path, change: str
) -> None:
    tables = in_shard(cell("c5", repeat=5))
    rows = tables["outcomes"]
    changed = {"fewer": rows.slice(1), "more": pa.concat_tables([rows, rows.slice(1)]), "none": rows.slice(2)}
    tables["outcomes"] = changed.get(change, rows)
    if change == "no cell":
        del tables["cells"]
    ledger.append(tables)
    (finding,) = check(run).findings[:1]
    assert (finding.kind, finding.place) == ("rows", str(segments(run)[-1]))
    says = {"fewer": "has 1 row, and 2 were planned", "more": "has rows twice: 3 of 2 samples"}
    says |= {"none": "has 0 rows, and 2 were planned", "no cell": "2 rows of cell c5, which is not there"}
    assert says[change] in finding.what
    repair(run)
    assert cells(run) == set(CELLS)
    assert Ledger.open(run).query("FROM all_outcomes WHERE cell = 'c5'").num_rows == 0
    assert not check(run).damaged


def test_a_cell_on_fewer_samples_than_its_group_has(ledger: Ledger, cell: Callable[..., Tables], run: Path) -> None:
    ledger.append(in_shard(cell("c5", ["s1"], repeat=5)))
    (finding,) = check(run).findings
    assert "cell c5 (push against plain) has 1 row, and 2 were planned" in finding.what


def test_rows_that_readers_would_see_twice(ledger: Ledger, cell: Callable[..., Tables], run: Path) -> None:
    ledger.append(in_shard(cell("again", repeat=1)))
    (finding,) = check(run).findings
    assert (finding.kind, finding.what) == (
        "duplicate",
        "outcomes: 2 cells with rows that stand there twice, again among them",
    )
    repair(run)
    assert cells(run) == {"c2", "c3", "c4"}
    assert not check(run).damaged


@pytest.mark.parametrize("damage", [Path.unlink, flip, lambda path: path.write_bytes(b"PK")])
def test_lost_inputs_are_made_again_by_their_cell(run: Path, damage: Callable[[Path], None]) -> None:
    path = cell_inputs(run, "c3")
    damage(path)
    (finding,) = check(run).findings
    assert (finding.kind, finding.place, finding.damage) == ("inputs", str(path), True)
    repair(run)
    assert cells(run) == {"c1", "c2", "c4"}
    assert scored(run) == {"c1", "c2", "c4"}
    assert not path.exists()
    assert check(run).findings == []


def test_lost_clean_inputs_are_made_again_by_one_cell(run: Path) -> None:
    flip(shard_inputs(run, "g"))
    assert check(run).damaged
    repair(run)
    assert cells(run) == {"c2", "c3", "c4"}, "one of those that use them"
    assert (run / "ledger" / "aside" / "inputs" / "shards" / "g.npz").is_file()
    assert kinds(check(run)) == ["orphan"], "what it had kept"


def test_inputs_that_somebody_deleted_are_not_lost(run: Path) -> None:
    delete_inputs(run, Ledger.open(run), sample="s2")
    assert check(run).findings == []
    delete_inputs(run, Ledger.open(run), model="plain")
    assert check(run).findings == []


def test_what_is_only_untidy_is_told_and_is_no_damage(run: Path) -> None:
    folder = run / "ledger" / "segments"
    (folder / ".unfinished-00000009-abcdef01").mkdir()
    (folder / "notes.txt").write_text("mine")
    (segments(run)[1] / "extra.txt").write_text("mine")
    write_inputs(cell_inputs(run, "stopped"), ["s1"], np.ones((1, 3)))
    found = check(run)
    assert sorted(kinds(found)) == ["orphan", "orphan", "orphan", "unfinished"]
    assert not found.damaged
    assert repair(run).findings == found.findings
    assert not (run / "ledger" / "aside").exists()


def test_without_digests_only_the_structure_is_checked(run: Path) -> None:
    for segment in segments(run):
        as_of_an_earlier_version(segment)
    found = check(run)
    assert (found.findings, found.n_without_digest) == ([], 4)
    file = segments(run)[1] / "outcomes.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    assert kinds(check(run)) == ["unreadable"]
    repair(run)
    assert cells(run) == {"c3", "c4"}


def test_of_a_damaged_merged_segment_the_list_of_what_it_replaced_is_damaged(run: Path) -> None:
    compact(run)
    (merged,) = segments(run)
    flip(merged / "replaces.json", 0.1)
    with pytest.raises(LedgerError, match=r"replaces.json: cannot be read.*ledger check RUN --repair"):
        Ledger.open(run).query("SELECT 1")
    assert [Path(finding.place).name for finding in check(run).findings] == ["replaces.json"]
    repair(run)
    assert (cells(run), scored(run)) == (set(CELLS), set(CELLS))
    assert check(run).findings == []


def test_a_repair_waits_for_no_writer(run: Path) -> None:
    with locked(run), pytest.raises(LedgerError, match="is writing to this folder"):
        repair(run)


def test_a_repair_that_was_stopped_is_finished_by_the_next(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(segments(run)[1] / "outcomes.parquet")
    flip(cell_inputs(run, "c3"))
    real, calls = Path.rename, 0
    for stop in (1, 2, 4):
        copy = shutil.copytree(run, run.with_name(f"copy-{stop}"))
        calls = 0

        def rename(self: Path, target: Path, stop: int = stop) -> Path:
            nonlocal calls
            calls += 1
            if calls == stop:
                raise KeyboardInterrupt
            return real(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", rename)
            with pytest.raises(KeyboardInterrupt):
                repair(copy)
        repair(copy)
        assert cells(copy) == {"c4"}
        assert scored(copy) == {"c4"}
        assert not check(copy).damaged


def test_a_repair_that_was_stopped_before_it_took_cells_out_finds_lost_inputs_again(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_inputs(run, "g").unlink()

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repairing, "_mend", stopped)
        with pytest.raises(KeyboardInterrupt):
            repair(run)
    assert check(run).damaged
    repair(run)
    assert cells(run) == {"c2", "c3", "c4"}, "one of those that use them makes them again"
    assert not check(run).damaged


@pytest.mark.parametrize("merged", [False, True])
def test_inputs_that_were_made_again_can_be_lost_again(run: Path, cell: Callable[..., Tables], merged: bool) -> None:
    for _ in range(2):
        shard_inputs(run, "g").unlink()
        assert check(run).damaged
        repair(run)
        assert not check(run).damaged
        (lost,) = set(CELLS) - cells(run)
        write_inputs(shard_inputs(run, "g"), ["s1", "s2"], np.zeros((2, 3)))
        Ledger.open(run).append(in_shard(cell(lost, repeat=int(lost[1]))))
        assert check(run).findings == []
        if merged:
            compact(run)
            assert check(run).findings == []


def test_a_list_of_deleted_inputs_of_an_earlier_version(run: Path) -> None:
    cell_inputs(run, "c3").unlink()
    (run / "inputs" / "deleted.json").write_text(json.dumps(["inputs/cells/c3/c3.npz"]))
    assert check(run).findings == []


def test_deleted_inputs_stay_deleted_when_segments_are_merged(run: Path) -> None:
    delete_inputs(run, Ledger.open(run), sample="s2")
    compact(run)
    assert check(run).findings == []


def test_what_went_aside_before_is_not_overwritten(run: Path) -> None:
    path, segment = cell_inputs(run, "c3"), segments(run)[1]
    whole = {file.name: file.read_bytes() for file in segment.iterdir()}
    for times in (1, 2):
        flip(path)
        flip(segment / "outcomes.parquet")
        repair(run)
        assert len([*(run / "ledger" / "aside" / "inputs").rglob("c3.npz*")]) == times
        assert len([*(run / "ledger" / "aside").glob(f"{segment.name}*")]) == times
        path.write_bytes(b"PK")
        segment.mkdir()  # somebody puts a backup back
        for name, data in whole.items():
            (segment / name).write_bytes(data)
        for other in segments(run):
            if other.name[:8] == segment.name[:8] and other != segment:
                shutil.rmtree(other)


def test_a_backup_that_was_put_back_disturbs_no_writer(run: Path) -> None:
    segment = segments(run)[0]
    flip(segment / "arms.parquet")
    repair(run)
    shutil.copytree(run / "ledger" / "aside" / segment.name, segment)
    tidy(Storage(run))
    tidy(Storage(run))
    assert {entry.name for entry in (run / "ledger" / "aside").iterdir()} == {segment.name, f"{segment.name}.2"}


# While others write


@pytest.mark.parametrize("step", ["read_history", "all_segments", "faults_of", "counted_rows"])
def test_segments_may_be_merged_meanwhile(run: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before, real, merged = check(run), getattr(checking, step), []

    def meanwhile(*given: Any) -> Any:
        if not merged:
            merged.append(compact(run))
        return real(*given)

    monkeypatch.setattr(checking, step, meanwhile)
    found = check(run)
    assert (found.n_cells, found.n_rows, found.findings) == (before.n_cells, before.n_rows, [])
    assert len(found.segments) == 1


def test_who_writes_meanwhile_is_told(run: Path) -> None:
    flip(cell_inputs(run, "c3"))
    with locked(run):
        found = check(run)
    assert found.writer is not None
    assert found.writer.startswith("process ")
    assert f"{found.writer} is writing to this run and may be making it again" in found.findings[0].remedy
    assert check(run).writer is None


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, repair
from advrisk.ledger.maintenance.deleting import delete_inputs
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
run = Path(sys.argv[1])
ledger = Ledger.open(run)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for act in (lambda: repair(run), lambda: delete_inputs(run, ledger, model="plain")):
    try:
        act()
    except LedgerError as error:
        print(error)
"""


def test_a_full_disk_is_told(run: Path) -> None:
    shard_inputs(run, "g").unlink()
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("File too large") == 2
    repair(run)
    assert not check(run).damaged


def test_manifests_tell_of_files_and_inputs(run: Path) -> None:
    told = json.loads((segments(run)[1] / "segment.json").read_text())
    assert set(told["files"]) == {"cells.parquet", "outcomes.parquet", "outputs.parquet"}
    assert sorted(Path(path).name for path in told["inputs"]) == ["c1.npz", "c2.npz", "g.npz"]
    for segment in segments(run):
        for file in segment.glob("*.parquet"):
            assert pq.read_schema(file).metadata[b"advrisk.schema"] == b"7", "the layout of tables is as it was"


def test_nothing_is_drawn_into_what_is_printed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB draws a bar once a query takes two seconds; what `--json` prints would be no JSON any more."""
    drawn = []
    made = counting.quiet_connection

    def asked(memory_mb: int, *, n_segments: int) -> Any:
        connection = made(memory_mb, n_segments=n_segments)
        found = connection.sql("SELECT current_setting('enable_progress_bar') AS bar").to_arrow_table()
        drawn.append(found["bar"][0].as_py())
        return connection

    monkeypatch.setattr(counting, "quiet_connection", asked)
    check(run)
    assert drawn == [False]


# Limits of the machine

LIMITED = """
import resource, sys
from pathlib import Path
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, check
import duckdb, pyarrow.parquet
kind, limit, run = getattr(resource, sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if kind == resource.RLIMIT_AS:
    limit += int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(kind, (limit, limit))
try:
    found = check(run)
    print(len(found.segments), found.n_rows, len(found.findings))
    read = Ledger.open(run).query("SELECT count(*) AS n FROM outcomes JOIN outputs USING (cell, sample)")
    print(read["n"][0].as_py())
except LedgerError as error:
    print(error)
"""


def limited(run: Path, kind: str, limit: int) -> str:
    command = [sys.executable, "-W", "error", "-c", LIMITED, kind, str(limit), str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def many(run: Path, cell: Callable[..., Tables], arms: Callable[..., Tables]) -> Path:
    """The same with 30 more segments."""
    ledger = Ledger.open(run)
    for number in range(30):
        ledger.append(in_shard(cell(f"m{number}", repeat=10 + number)) | arms(("plain", "push", "r1")))
    return run


def test_many_segments_are_checked_with_few_open_files(many: Path) -> None:
    assert limited(many, "RLIMIT_NOFILE", 64) == "34 68 0\n68\n"


@pytest.mark.parametrize("limit", [3, 4, 5])
def test_too_few_open_files_are_named_and_nothing_is_called_damaged(many: Path, limit: int) -> None:
    said = limited(many, "RLIMIT_NOFILE", limit)
    assert said.startswith(f"too many open files: this process may open {limit}. Allow more (`ulimit -n 4096`)"), said
    assert not check(many).damaged


@pytest.mark.parametrize("megabytes", [64, 256, 500])
def test_too_little_memory_is_named_and_nothing_is_called_damaged(run: Path, megabytes: int) -> None:
    said = limited(run, "RLIMIT_AS", megabytes * 2**20)
    assert said.startswith("memory ran out. End other programs, allow more (`ulimit -v unlimited`"), said


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
@pytest.mark.parametrize("step", ["stamp_file", "read_manifest"])
def test_a_file_that_memory_does_not_suffice_for_is_not_called_damaged(
    run: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    def short(_: Path) -> None:
        raise error

    monkeypatch.setattr(f"advrisk.ledger.rewriting.{step}", short)
    for act in (check, repair):
        with pytest.raises(LedgerError, match="memory ran out"):
            act(run)


def test_rows_that_do_not_fit_into_memory_are_not_called_damaged(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MEMORY_MB", 0.064)
    with pytest.raises(LedgerError, match="memory ran out"):
        check(run)


# Bounded memory: only cells that differ from their shard are counted sample by sample


def unlike_samples(run: Path, ledger: Ledger, cell: Callable[..., Tables], samples: list[str]) -> list[str]:
    ledger.append(in_shard(cell("odd", samples, repeat=7)))
    return [finding.what for finding in check(run).findings]


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        (["s1", "s1"], "has rows twice: 2 of 1 sample"),
        (["s1", "s2", "s2"], "has rows twice: 3 of 2 samples"),
        (["s1", "s2", "s9"], "has 3 rows, and 2 were planned"),
    ],
)
def test_rows_are_counted_by_sample_where_a_cell_is_unlike_its_shard(
    ledger: Ledger, cell: Callable[..., Tables], run: Path, samples: list[str], says: str
) -> None:
    assert any(says in what for what in unlike_samples(run, ledger, cell, samples))


def test_cells_of_two_shards_with_a_common_sample(ledger: Ledger, cell: Callable[..., Tables], run: Path) -> None:
    more = {"sample": ["s3", "s4"], "shard": ["h", "h"], "place": [0, 1], "split": ["evaluate"] * 2}
    ledger.append({"samples": table_from("samples", more)})
    wrong = in_shard(cell("odd", ["s2", "s3"], repeat=1))
    place = wrong["cells"].schema.get_field_index("shard")
    of_h = pa.array(["h"]).dictionary_encode()
    wrong["cells"] = wrong["cells"].set_column(place, wrong["cells"].schema.field(place), of_h)
    ledger.append(wrong)
    (finding,) = check(run).findings
    assert (finding.kind, finding.what[:18]) == ("duplicate", "outcomes: 2 cells ")


def test_imported_cells_share_a_sample(ledger: Ledger, cell: Callable[..., Tables], run: Path) -> None:
    ledger.append(cell("i1", ["a", "b"], repeat=8))
    ledger.append(cell("i2", ["c", "d"], repeat=8))
    assert check(run).findings == []
    ledger.append(cell("i3", ["b", "e"], repeat=8))
    (finding,) = check(run).findings
    assert finding.what == "outcomes: 2 cells with rows that stand there twice, i1 among them"


@pytest.mark.parametrize(("table", "n"), [("outputs", 1), ("scores", 2)])
def test_outputs_and_scores_that_stand_there_twice(
    ledger: Ledger, cell: Callable[..., Tables], run: Path, table: str, n: int
) -> None:
    if table == "outputs":
        tables = in_shard(cell("odd", repeat=7))
        tables["outputs"] = pa.concat_tables([tables["outputs"], tables["outputs"].slice(1)])
    else:
        columns = {"cell": ["c1", "c2"], "sample": ["s1"] * 2, "detector": ["d"] * 2, "score": [0.1, 0.2]}
        tables = {"scores": table_from("scores", columns)}
    ledger.append(tables)
    (finding,) = check(run).findings
    assert finding.what.startswith(f"{table}: {n} cell")
