"""Two ledgers of one study become one; what contradicts is refused by name, and then nothing has changed."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked, table_from
from advrisk.ledger.frozen import frozen_list, frozen_lists, frozen_question, write_frozen
from advrisk.ledger.history import read_history
from advrisk.ledger.inputs import cell_inputs, read_inputs, write_inputs
from advrisk.ledger.maintenance import merging
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.maintenance.diffing import diff_ledgers
from advrisk.ledger.maintenance.merging import merge_ledgers
from advrisk.ledger.maintenance.repairing import repair
from advrisk.ledger.segments import segment_folders
from advrisk.ledger.stopping import Look, Stopping, read_stopping, write_stopping
from advrisk.study import load_study

Tables = dict[str, Any]


@pytest.fixture
def make(tmp_path: Path, cell: Callable[..., Tables]) -> Callable[..., Path]:
    """A run of some models: one cell each, with inputs and a score."""

    def run(
        name: str,
        models: str,
        *,
        outcome: str = "success",
        d_linf: float | None = 0.1,
        recipe: str = "r",
        hash_: str = "h",
        shard: str = "g",
    ) -> Path:
        home = tmp_path / name
        ledger = Ledger.open(home, create=True)
        ledger.append(question(models, recipe, hash_, shard))
        for model in models:
            made = cell(f"cell-{model}", model=model, recipe=recipe, outcome=outcome, d_linf=d_linf)
            made["cells"] = with_shard(made["cells"], shard)
            write_inputs(cell_inputs(home, f"cell-{model}"), ["s1"], np.full((1, 3), d_linf or 0.0))
            ledger.append(made)
            score = {"cell": [f"cell-{model}"], "sample": ["s1"], "detector": ["d"], "score": [d_linf or 0.0]}
            ledger.append({"scores": table_from("scores", score)})
        return home

    return run


def question(models: str, recipe: str, hash_: str, shard: str) -> Tables:
    n = len(models)
    arms = {"model": list(models), "arm": ["push"] * n, "recipe": [recipe] * n, "origin": ["study"] * n}
    arms |= {"repeats": [1] * n}
    samples = {"sample": ["s1", "s2"], "hash": [hash_] * 2, "split": ["evaluate"] * 2, "shard": [shard] * 2}
    return {
        "models": table_from("models", {"model": list(models), "digest": [f"digest-{name}" for name in models]}),
        "arms": table_from("arms", arms),
        "samples": table_from("samples", samples | {"place": [0, 1]}),
    }


def with_shard(cells: pa.Table, shard: str) -> pa.Table:
    place = cells.schema.get_field_index("shard")
    return cells.set_column(place, cells.schema.field(place), pa.array([shard]).dictionary_encode())


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def test_what_two_machines_did_is_what_one_would_have_done(make: Callable[..., Path], tmp_path: Path) -> None:
    one, other, both = make("one", "ab"), make("other", "bc"), make("both", "abc")
    before = bytes_of(one)
    done = merge_ledgers(one, other, out=tmp_path / "merged")
    assert (done.folder, done.n_cells, done.n_shared, done.n_inputs) == (tmp_path / "merged", 1, 1, 1)
    assert diff_ledgers(tmp_path / "merged", both).tables == ()
    assert bytes_of(one) == before
    assert check(tmp_path / "merged").findings == []
    assert read_inputs(cell_inputs(tmp_path / "merged", "cell-c")).keys() == {"s1"}
    merge_ledgers(one, other)
    assert diff_ledgers(one, both).tables == ()
    assert merge_ledgers(one, other).n_cells == 0, "it is all there"
    assert diff_ledgers(one, both).tables == ()


def test_a_cell_that_failed_here_and_not_there_is_taken_from_there(make: Callable[..., Path]) -> None:
    for order in (("bad", "good"), ("good2", "bad2")):
        runs = {
            name: make(name, "a", **({"outcome": "error", "d_linf": None} if "bad" in name else {})) for name in order
        }
        merge_ledgers(runs[order[0]], runs[order[1]])
        rows = Ledger.open(runs[order[0]]).outcomes(["outcome", "d_linf"]).to_pylist()
        assert rows == [{"outcome": "success", "d_linf": 0.1}] * 2
        assert Ledger.open(runs[order[0]]).query("SELECT score FROM scores")["score"].to_pylist() == [0.1]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"d_linf": 0.2}, r"hold different rows for 1 cell: push against b, repeat 0, sample s1 \(d_linf\)"),
        ({"recipe": "r2"}, "arms: push against b has the recipe r in .*one and r2 in .*other: settings"),
        ({"hash_": "h2"}, "samples: s1 has the hash h in .*one and h2 in .*other: the data differ"),
        ({"shard": "g2"}, "samples: s1 has the shard g in .* samples were added in other steps"),
    ],
)
def test_what_contradicts_is_refused_by_name(make: Callable[..., Path], change: dict[str, Any], complaint: str) -> None:
    one, other = make("one", "ab"), make("other", "bc", **change)
    before = bytes_of(one)
    with pytest.raises(LedgerError, match=complaint):
        merge_ledgers(one, other)
    assert bytes_of(one) == before


def test_another_study_another_model_the_same_folder(make: Callable[..., Path], tmp_path: Path) -> None:
    one, other = make("one", "a"), make("other", "b")
    with pytest.raises(LedgerError, match="are the same folder"):
        merge_ledgers(one, one / "ledger")
    with pytest.raises(LedgerError, match="is there already; choose a new folder"):
        merge_ledgers(one, other, out=tmp_path)
    Ledger.open(other).append({"models": table_from("models", {"model": ["a"], "digest": ["x"]})})
    with pytest.raises(LedgerError, match=r"models: a has the digest digest-a in .*: they are not the same model"):
        merge_ledgers(one, other)


def test_damage_is_not_merged(make: Callable[..., Path]) -> None:
    one, other = make("one", "a"), make("other", "b")
    file = segment_folders(other / "ledger")[1] / "cells.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(LedgerError, match=r"cells.parquet: is truncated"):
        merge_ledgers(one, other)


def test_lists_beside_the_ledger_are_put_together(make: Callable[..., Path]) -> None:
    one, other = make("one", "a"), make("other", "b")
    for home, name in ((one, "x"), (other, "y")):
        (home / "detectors.json").write_text(json.dumps({"study": ["d@1", f"{name}@1"], "imported": []}))
        (home / "search").mkdir()
        (home / "search" / f"{name}.json").write_text("{}")
        (home / "search" / "current.json").write_text(json.dumps([name]))
    shutil.copy(other / "search" / "y.json", one / "search" / "y.json")
    merge_ledgers(one, other)
    assert json.loads((one / "detectors.json").read_text())["study"] == ["d@1", "x@1", "y@1"]
    assert json.loads((one / "search" / "current.json").read_text()) == ["x", "y"]
    (other / "search" / "y.json").write_text('{"other": 1}')
    with pytest.raises(LedgerError, match=r"search/y.json of .* differ"):
        merge_ledgers(one, other)


# Their studies

STUDY = {
    "name": "s",
    "seed": 7,
    "data": {"source": "mnist-5k", "evaluate": 2},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": [0.1]}],
}


def asks(home: Path, models: str, *, at: str = "/first", more: Mapping[str, Any] = STUDY) -> Path:
    content = STUDY | {"models": {name: {"source": "demo", "name": name} for name in models}} | more
    (home / "study.yaml").write_text(f"# Relative paths are meant against {at}\n{yaml.safe_dump(content)}")
    return home


def test_the_study_of_both_names_the_models_of_both(make: Callable[..., Path], tmp_path: Path) -> None:
    one, other = asks(make("one", "ab"), "ab"), asks(make("other", "bc"), "bc", at="/second")
    done = merge_ledgers(one, other, out=tmp_path / "both")
    assert done.notes == ()
    found = load_study(tmp_path / "both" / "study.yaml")
    assert list(found.models) == ["a", "b", "c"]
    assert found.model_dump() == load_study(asks(tmp_path, "abc") / "study.yaml").model_dump()
    assert "# Of c: Relative paths are meant against /second\n" in (tmp_path / "both" / "study.yaml").read_text()
    assert list(load_study(one / "study.yaml").models) == ["a", "b"]
    for _ in range(2):
        assert merge_ledgers(one, other).notes == ()
        assert (one / "study.yaml").read_text() == (tmp_path / "both" / "study.yaml").read_text()


@pytest.mark.parametrize("more", [{"seed": 8}, {"models": {"b": {"source": "demo", "name": "else"}}}])
def test_of_studies_that_differ_in_more_it_is_said_what_to_run(make: Callable[..., Path], more: dict[str, Any]) -> None:
    one, other = asks(make("one", "ab"), "ab"), asks(make("other", "bc"), "bc", more=more)
    before = (one / "study.yaml").read_text()
    (note,) = merge_ledgers(one, other).notes
    names = "a, b" if "models" in more else "a, b, c"
    assert f"the study kept in {one} is the first one's" in note
    assert f"`advrisk run STUDY.yaml --out {one}` with a study of {names} does what is left" in note
    assert (one / "study.yaml").read_text() == before


# While others write


def test_neither_ledger_is_written_to_meanwhile(make: Callable[..., Path], tmp_path: Path) -> None:
    one, other = make("one", "a"), make("other", "b")
    for held in (one, other):
        for out in (None, tmp_path / "both"):
            with locked(held), pytest.raises(LedgerError, match=f"{held}: .* is writing to this folder"):
                merge_ledgers(one, other, out=out)
    assert not (tmp_path / "both").exists()
    assert not Ledger.open(one).query("FROM all_cells WHERE model = 'b'").num_rows


def test_what_did_not_arrive_is_told(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who does not know of the lock, as another machine, merges segments of the source while they are read."""
    one, other = make("one", "a"), make("other", "bc")
    real = merging._held

    def meanwhile(ledger: Ledger, name: str) -> set[tuple[str, ...]]:
        if not (tmp_path / "merged").exists():
            merged = shutil.copytree(other, tmp_path / "merged")
            (merged / "lock").unlink()
            compact(merged)
            shutil.rmtree(other / "ledger" / "segments")
            shutil.copytree(merged / "ledger" / "segments", other / "ledger" / "segments")
        return real(ledger, name)

    monkeypatch.setattr(merging, "_held", meanwhile)
    with pytest.raises(LedgerError, match=r"2 cells of .*other, cell-b among them, did not arrive in .*Merge again"):
        merge_ledgers(one, other)
    assert merge_ledgers(one, other).n_cells == 2
    assert Ledger.open(one).query("SELECT DISTINCT cell FROM outcomes").num_rows == 3


KILLED = """
import os, signal, sys
from advrisk.ledger import merge_ledgers
from advrisk.ledger.maintenance import merging
name, calls = sys.argv[1], iter(range(int(sys.argv[2])))
real = getattr(merging, name)

def killed(*given):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given)

setattr(merging, name, killed)
merge_ledgers(*sys.argv[3:5], out=sys.argv[5])
"""


@pytest.mark.parametrize(
    ("step", "calls"), [("_segment_names", 0), ("_copy_inputs", 0), ("publish", 0), ("_rows_of_cells", 2)]
)
def test_a_merge_that_is_killed_leaves_no_run_and_the_next_one_cleans_up(
    make: Callable[..., Path], tmp_path: Path, step: str, calls: int
) -> None:
    one, other, both = make("one", "a"), make("other", "b"), tmp_path / "both"
    program = [sys.executable, "-c", KILLED, step, str(calls), str(one), str(other), str(both)]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    assert not both.exists()
    (left,) = tmp_path.glob(".both.*")
    assert merge_ledgers(one, other, out=both).n_cells == 1
    assert not left.exists()
    assert not list(tmp_path.glob(".both*"))
    assert (check(both).findings, Ledger.open(both).finished_cells()) == ([], {"cell-a", "cell-b"})


# Runs that rest


def looked(n_shards: int, *shares: float, question: str = "q", order: tuple[str, ...] = ("g", "h")) -> Stopping:
    """Looks at a decision, each with a share of the error."""
    looks = tuple(
        Look("decided", True, place + 1, 2, share, 0.99, True, "a > b", question, f"shards-{place}")
        for place, share in enumerate(shares)
    )
    return Stopping({"decided": question}, order, 2, 2, looks, n_shards)


def test_a_run_that_stopped_early_is_finished_before_it_is_merged(make: Callable[..., Path]) -> None:
    one, other = make("one", "a"), make("other", "b")
    write_stopping(one, looked(1))
    for state in (None, looked(2), looked(0), looked(1, order=("h", "g"))):
        if state:
            write_stopping(other, state)
        before = bytes_of(one), bytes_of(other)
        for pair in ((one, other), (other, one)):
            with pytest.raises(LedgerError, match=r"stopped early, after . of 2 groups.*advrisk run STUDY.yaml --out"):
                merge_ledgers(*pair)
        assert (bytes_of(one), bytes_of(other)) == before
    write_stopping(other, looked(1))
    assert merge_ledgers(one, other).n_cells == 1, "both rest at the same place"


def test_looks_come_along_and_those_at_one_question_are_never_mixed(make: Callable[..., Path], tmp_path: Path) -> None:
    one, other = make("one", "a"), make("other", "b")
    write_stopping(other, looked(0, 0.1))
    merge_ledgers(one, other, out=tmp_path / "both")
    assert read_stopping(tmp_path / "both") == looked(0, 0.1)
    for n_shards in (0, 1):
        write_stopping(one, looked(n_shards, 0.2))
        write_stopping(other, looked(n_shards, 0.1))
        with pytest.raises(LedgerError, match=r"looks.json of .*one and .*other differ"):
            merge_ledgers(one, other)


@pytest.mark.parametrize("n_shards", [0, 1])
def test_halves_by_model_that_rest_at_one_place_are_merged_and_what_looks_spent_is_remembered(
    make: Callable[..., Path], n_shards: int
) -> None:
    """Their questions differ, as each names its models."""
    one, other = make("one", "a"), make("other", "b")
    write_stopping(one, looked(n_shards, 0.1, 0.2, question="of a"))
    write_stopping(other, looked(n_shards, 0.3, question="of b"))
    done = merge_ledgers(one, other)
    assert "decide nothing of both" in done.notes[0]
    found = read_stopping(one)
    assert found is not None
    assert (found.order, found.n_shards, found.looks, found.decision_level) == (("g", "h"), n_shards, (), None)
    assert [look.share for look in found.earlier] == [0.1, 0.2, 0.3]
    assert [look.share for look in found.asking({"decided": "of a"}).looks] == [0.1, 0.2]
    assert merge_ledgers(one, other).n_cells == 0
    assert read_stopping(one) == found, "nothing is counted twice"


def test_the_file_of_a_run_that_rests_is_looked_at(make: Callable[..., Path]) -> None:
    one, other = make("one", "a"), make("other", "b")
    (one / "looks.json").write_text("[")
    with pytest.raises(LedgerError, match=r"looks.json: cannot be read"):
        merge_ledgers(one, other)


def test_a_cell_that_was_cut_short_is_not_sound(make: Callable[..., Path], cell: Callable[..., Tables]) -> None:
    """It has no error row, and other rows than the whole one: that is no contradiction."""
    one, other = make("one", ""), make("other", "a", d_linf=0.1)
    cut = cell("cell-a", model="a", recipe="r", d_linf=0.3)
    flags = cut["cells"].schema.get_field_index("flags")
    field = cut["cells"].schema.field(flags)
    cut["cells"] = with_shard(cut["cells"].set_column(flags, field, pa.array([["cut-short"]], field.type)), "g")
    Ledger.open(one).append(question("a", "r", "h", "g"))
    Ledger.open(one).append(cut)
    assert Ledger.open(one).finished_cells(without_errors=True) == set()
    assert merge_ledgers(one, other).n_cells == 1
    assert Ledger.open(one).outcomes(["d_linf"])["d_linf"].to_pylist() == [0.1, 0.1]


def test_of_a_folder_that_cannot_be_copied_one_error_is_told(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make("one", "a"), make("other", "b")

    def full(*_: object, **__: object) -> None:
        raise shutil.Error([("from", "to", f"[Errno 28] No space left on device: {n}") for n in range(999)])

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(LedgerError, match=r"both: cannot be written: \[Errno 28\] No space left on device: 0$"):
        merge_ledgers(one, other, out=tmp_path / "both")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def freeze(run: Path, zeta: float) -> None:
    samples = [("s1", "h")]
    one = frozen_list(("a", "linf", 0.1), {"push": "r"}, (), samples)
    write_frozen(Ledger.open(run), frozen_question([one], samples, {"zeta": zeta}))


def test_frozen_questions_go_with_the_cells_and_two_kinds_are_refused(
    make: Callable[..., Path], tmp_path: Path
) -> None:
    one, other = make("one", "a"), make("other", "b")
    freeze(other, 0.05)
    merge_ledgers(one, other)
    assert [found.key for found in frozen_lists(Ledger.open(one))] == [("a", "linf", 0.1)]
    merge_ledgers(one, other)
    assert Ledger.open(one).query("FROM questions").num_rows == 1, "not twice"
    third = make("third", "c")
    freeze(third, 0.01)
    with pytest.raises(LedgerError, match=r"are to certify differs: .*; merge before certifying, or keep them apart"):
        merge_ledgers(one, third)


@pytest.mark.parametrize("without_history", [False, True])
def test_what_a_repair_removed_is_named_by_the_merged_history(make: Callable[..., Path], without_history: bool) -> None:
    """Else a certificate would lose its caveat by a merge into a run that was never repaired."""
    one, other = make("one", "a"), make("other", "ab")
    gone = segment_folders(other / "ledger")[-1]
    shutil.rmtree(gone)
    if without_history:
        (other / "ledger" / "history.jsonl").unlink()
    repair(other)
    theirs = read_history(other / "ledger")
    merge_ledgers(one, other)
    merged = read_history(one / "ledger")
    assert (merged.removed, merged.accepted) == (theirs.removed, theirs.accepted)
    assert merged.removed or merged.accepted
    assert not check(one).damaged
    merge_ledgers(one, other)
    assert read_history(one / "ledger").lines == merged.lines, "it is named once"
