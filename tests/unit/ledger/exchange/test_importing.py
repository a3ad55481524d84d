"""Somebody else's outcomes: understood where they are clear, refused by row and column where they are not."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked, table_from
from advrisk.ledger.exchange import source
from advrisk.ledger.exchange.importing import import_outcomes
from bench.import_rows import imported as imported_in_a_child
from bench.import_rows import write

Import = Callable[..., Ledger]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """The ledger after a CSV with these lines was imported."""

    def load(*lines: str, norm: str | None = None, into: str = "run") -> Ledger:
        (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
        n = import_outcomes(tmp_path / "theirs.csv", tmp_path / into, norm=norm)
        ledger = Ledger.open(tmp_path / into)
        assert n == len(lines) - 1
        return ledger

    return load


def rows(ledger: Ledger, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ledger.outcomes(columns).to_pylist()]


def test_a_distance_is_a_success_none_is_resistance_and_zero_was_wrong_before(imported: Import) -> None:
    ledger = imported("model,sample,distance", "a,1,0.25", "a,2,", "a,3,inf", "a,4,0", norm="l2")
    assert rows(ledger, "model", "sample", "outcome", "d_l2", "norm", "arm", "kind", "criterion", "repeat") == [
        ("a", "1", "success", 0.25, "l2", "imported-l2", "attack", "label", 0),
        ("a", "2", "resisted", None, "l2", "imported-l2", "attack", "label", 0),
        ("a", "3", "resisted", None, "l2", "imported-l2", "attack", "label", 0),
        ("a", "4", "already_wrong", None, "l2", "imported-l2", "attack", "label", 0),
    ]


def test_what_the_file_says_is_kept(imported: Import) -> None:
    ledger = imported(
        "model,sample,arm,norm,eps,repeat,outcome,d_l2,d_linf,n_forward,message,label,weight",
        "a,x,cw,l2,0.5,0,success,0.4,0.1,12,,3,2.5",
        "a,x,cw,l2,0.5,1,error,,,7,it broke,3,2.5",
    )
    assert rows(ledger, "arm", "eps", "repeat", "outcome", "d_l2", "d_linf", "n_forward", "message") == [
        ("cw", 0.5, 0, "success", 0.4, 0.1, 12, None),
        ("cw", 0.5, 1, "error", None, None, 7, "it broke"),
    ]
    assert ledger.query("SELECT sample, label, weight, split FROM samples").to_pylist() == [
        {"sample": "x", "label": 3, "weight": 2.5, "split": "evaluate"}
    ]
    assert ledger.query("SELECT arm, norm, eps, repeats, origin FROM arms").to_pylist() == [
        {"arm": "cw", "norm": "l2", "eps": 0.5, "repeats": 2, "origin": "import"}
    ]
    found = ledger.query("SELECT repeat, n_samples, n_errors, accounting FROM cells ORDER BY repeat").to_pylist()
    assert [tuple(row.values()) for row in found] == [(0, 1, 0, "imported"), (1, 1, 1, "imported")]


def test_a_norm_column_speaks_for_each_row(imported: Import) -> None:
    ledger = imported("model,sample,distance,norm", "a,1,0.5,l2", "a,1,0.1,linf")
    assert rows(ledger, "arm", "d_l2", "d_linf") == [("imported-l2", 0.5, None), ("imported-linf", None, 0.1)]


def test_distances_in_one_norm_need_no_other_word(imported: Import) -> None:
    ledger = imported("model,sample,d_linf", "a,1,0.1", "a,2,")
    assert rows(ledger, "arm", "norm", "outcome") == [
        ("imported-linf", "linf", "success"),
        ("imported-linf", "linf", "resisted"),
    ]


def test_names_stay_as_they_are_written(imported: Import) -> None:
    ledger = imported("model,sample,arm,d_l2", "1,007,2024-01-01,1", "1,7,true,1", "1,NA,1e3,1")
    assert sorted(rows(ledger, "model", "sample", "arm")) == [
        ("1", "007", "2024-01-01"),
        ("1", "7", "true"),
        ("1", "NA", "1e3"),
    ]


def test_parquet_is_read_too(tmp_path: Path) -> None:
    table = pa.table({"model": ["a", "a"], "sample": [1, 2], "d_linf": [0.5, None]})
    pq.write_table(table, tmp_path / "theirs.parquet")
    assert import_outcomes(tmp_path / "theirs.parquet", tmp_path / "run") == 2
    assert rows(Ledger.open(tmp_path / "run"), "sample", "outcome") == [("1", "success"), ("2", "resisted")]


def test_a_second_file_may_bring_other_models_and_arms(imported: Import) -> None:
    imported("model,sample,d_l2", "a,1,0.5")
    imported("model,sample,d_l2", "b,1,0.25")
    ledger = imported("model,sample,arm,d_l2", "a,1,cw,0.125")
    assert rows(ledger, "model", "arm", "d_l2") == [
        ("a", "cw", 0.125),
        ("a", "imported-l2", 0.5),
        ("b", "imported-l2", 0.25),
    ]


def test_what_the_ledger_knows_of_samples_and_models_is_not_overwritten(imported: Import, tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "run", create=True)
    ledger.append(
        {
            "samples": table_from("samples", {"sample": ["1"], "hash": ["h"], "label": [4], "split": ["calibrate"]}),
            "models": table_from("models", {"model": ["a"], "digest": ["d"]}),
        }
    )
    ledger = imported("model,sample,d_l2,label", "a,1,0.5,9", "a,2,0.5,9", "b,2,0.5,9")
    assert ledger.query("SELECT sample, hash, label, split FROM samples ORDER BY sample").to_pylist() == [
        {"sample": "1", "hash": "h", "label": 4, "split": "calibrate"},
        {"sample": "2", "hash": None, "label": 9, "split": "evaluate"},
    ]
    found = {row["model"]: row["digest"] for row in ledger.query("SELECT * FROM models").to_pylist()}
    assert found["a"] == "d"
    assert found["b"].startswith("imported-")


def test_the_same_rows_are_not_imported_twice(imported: Import) -> None:
    imported("model,sample,d_l2", "a,1,0.5")
    with pytest.raises(LedgerError, match="already holds imported-l2 against a; choose another folder"):
        imported("model,sample,d_l2", "a,1,0.5")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["model,sample"], "a column of distances is missing: d_linf, or distance with a norm"),
        (["sample,d_l2", "1,1"], "the column 'model' is missing"),
        (["model,d_l2", "a,1"], "the column 'sample' is missing"),
        (["model,sample,d_l3", "a,1,1"], "unknown column 'd_l3'; did you mean 'd_l"),
        (["model,sample,d_l2"], "holds no row"),
        (["model,sample,d_l2", "a,1,1", ",2,1"], "row 2: model is empty"),
        (["model,sample,d_l2", "a,,1"], "row 1: sample is empty"),
        (
            ["model,sample,distance", "a,1,1"],
            "row 1: a distance in which norm? Name it in a column `norm`, or with --norm",
        ),
        (["model,sample,distance,norm", "a,1,1,l7"], "row 1: norm is 'l7'"),
        (["model,sample,d_l2", "a,1,-1"], "row 1: d_l2 must be a distance of at least 0, or empty, found -1"),
        (["model,sample,d_l2", "a,1,far"], "row 1: d_l2 must be a distance of at least 0, or empty, found 'far'"),
        (["model,sample,d_l2,outcome", "a,1,1,won"], "row 1: outcome is 'won'; known: already_wrong, "),
        (["model,sample,d_l2,outcome", "a,1,1,sucess"], "row 1: outcome is 'sucess'; did you mean 'success'?"),
        (["model,sample,d_l2,outcome", "a,1,,success"], "row 1: a success without a distance"),
        (["model,sample,d_l2,outcome", "a,1,inf,success"], "row 1: a success without a distance"),
        (
            ["model,sample,d_l2", "a,1,1", "b,1,1", "a,1,2"],
            "row 3: model a, arm imported-l2, sample 1 stands here twice, first in row 1",
        ),
        (
            ["model,sample,d_l2,repeat", "a,1,1,once"],
            "row 1: repeat must be a whole number from 0 to 999999, found 'once'",
        ),
        (["model,sample,d_l2,repeat", "a,1,1,-1"], "row 1: repeat must be a whole number from 0 to 999999, found -1"),
        (["model,sample,d_l2,repeat", "a,1,1,0.5"], "row 1: repeat must be a whole number from 0 to 999999, found 0.5"),
        (
            ["model,sample,d_l2,repeat", "a,1,1,1000000"],
            "row 1: repeat must be a whole number from 0 to 999999, found 1000000",
        ),
        (["model,sample,d_l2,weight", "a,1,1,heavy"], "row 1: weight must be a positive number, found 'heavy'"),
        (["model,sample,d_l2,weight", "a,1,1,0"], "row 1: weight must be a positive number, found 0"),
        (["model,sample,d_l2,weight", "a,1,1,inf"], "row 1: weight must be a positive number, found inf"),
        (["model,sample,d_l2,label", "a,1,1,cat"], "row 1: label must be a whole number, found 'cat'"),
        (
            ["model,sample,d_l2,n_forward", "a,1,1,2.5"],
            "row 1: n_forward must be a whole number of at least 0, found 2.5",
        ),
        (
            ["model,sample,d_l2,eps", "a,1,1,8", "a,2,1,-8"],
            "row 2: eps must be a finite number of at least 0, found -8",
        ),
        (["model,sample,d_l2,eps", "a,1,1,nan"], "row 1: eps must be a finite number of at least 0, found nan"),
        (["model,sample,d_l2,confidence", "a,1,1,7.5"], "row 1: confidence must be a number from 0 to 1, found 7.5"),
        (["model,sample,d_l2,confidence", "a,1,1,-0.1"], "row 1: confidence must be a number from 0 to 1, found -0.1"),
        (
            ["model,sample,d_l2,success_rate", "a,1,1,nan"],
            "row 1: success_rate must be a number from 0 to 1, found nan",
        ),
        (
            ["model,sample,d_l2,n_forward", "a,1,1,-3"],
            "row 1: n_forward must be a whole number of at least 0, found -3",
        ),
        (["model,sample,d_l2,first_s", "a,1,1,-3"], "row 1: first_s must be a finite number of at least 0, found -3"),
        (["model,sample,d_l2,near_l2", "a,1,1,-1"], "row 1: near_l2 must be a distance of at least 0, or empty"),
        (["model,sample,d_l2", "a,1,nan"], "row 1: d_l2 must be a distance of at least 0, or empty, found nan"),
        (["model,sample,d_l2,prediction", "a,1,1,3000000000"], "prediction must be a whole number, found 3000000000"),
        (["model,sample,d_l2,survives_8bit", "a,1,1,7"], "row 1: survives_8bit must be true or false, found 7"),
        (["model,sample,d_l2,draws", "a,1,1,7"], "row 1: draws must be a list of whole numbers, found 7"),
        (["model,sample,d_l2,kind", "a,1,1,atack"], "row 1: kind is 'atack'; did you mean 'attack'?"),
        (
            ["model,sample,d_l2,label", "a,1,1,3", "a,2,1,3", "b,1,1,4"],
            "row 3: sample 1 has label 4, but 3 in row 1; a sample has one label",
        ),
        (
            ["model,sample,d_l2,weight", "a,1,1,3", "b,1,1,2"],
            "row 2: sample 1 has weight 2.0, but 3.0 in row 1; a sample has one weight",
        ),
        (
            ["model,sample,repeat,d_l2", "a,1,0,1", "a,1,1,1", "a,1,1,2"],
            "row 3: model a, arm imported-l2, sample 1, repeat 1 stands here twice, first in row 2; keep one of them",
        ),
        (["model,sample,d_l2", "a,1"], "cannot be read as .csv: "),
        ([""], "cannot be read as .csv: "),
    ],
)
def test_what_is_unclear_is_refused_and_nothing_is_imported(
    imported: Import, tmp_path: Path, lines: list[str], complaint: str
) -> None:
    with pytest.raises(LedgerError) as caught:
        imported(*lines)
    assert complaint in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_first_row_at_fault_is_named_whatever_is_wrong_with_later_ones(imported: Import) -> None:
    with pytest.raises(LedgerError, match=r"row 2: a success without a distance; give one, or `resisted`"):
        imported("model,sample,d_l2,outcome,eps", "a,1,1,,8", "a,2,,success,8", "a,3,far,,8", "a,4,1,,nan")


def test_a_row_is_counted_through_all_pieces_of_a_file(imported: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_PIECE_BYTES", 100)
    lines = [f"a,{number},0.5" for number in range(1, 101)]
    with pytest.raises(LedgerError, match="row 101: d_l2 must be a distance of at least 0, or empty, found 'far'"):
        imported("model,sample,d_l2", *lines, "a,101,far")
    with pytest.raises(
        LedgerError, match="row 101: model a, arm imported-l2, sample 7 stands here twice, first in row 7"
    ):
        imported("model,sample,d_l2", *lines, "a,7,0.5")


def test_a_label_that_only_some_rows_state_is_that_of_the_sample(imported: Import) -> None:
    ledger = imported("model,sample,d_l2,label,weight", "a,1,1,3,2", "b,1,1,,", "a,2,1,,")
    assert ledger.query("SELECT sample, label, weight FROM samples ORDER BY sample").to_pylist() == [
        {"sample": "1", "label": 3, "weight": 2.0},
        {"sample": "2", "label": None, "weight": 1.0},
    ]


def test_whole_numbers_that_are_written_with_a_fraction_are_whole(imported: Import) -> None:
    ledger = imported("model,sample,d_l2,prediction,repeat,n_forward", "a,1,1,3.0, 1,9007199254740993", "a,1,1,,0,2")
    assert rows(ledger, "repeat", "prediction", "n_forward") == [(0, None, 2), (1, 3, 9007199254740993)]


def test_categories_that_no_row_has_are_no_fault(tmp_path: Path) -> None:
    norm = pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), ["l7", "l2"])
    draws = pa.array([[3, 3, -1]])
    table = pa.table({"model": [1.5], "sample": ["1"], "distance": [1], "norm": norm, "draws": draws})
    pq.write_table(table, tmp_path / "theirs.parquet")
    import_outcomes(tmp_path / "theirs.parquet", tmp_path / "run")
    found = Ledger.open(tmp_path / "run")
    assert rows(found, "model", "norm", "d_l2", "draws") == [("1.5", "l2", 1.0, [3, 3, -1])]


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        (
            {"eps": pa.array([None, 7], pa.timestamp("s"))},
            "row 2: eps must be a finite number of at least 0, found datet",
        ),
        ({"arm": [["x"], ["y"]]}, "row 1: arm must be text, found list<"),
        ({"arm": [b"x", b"\xff"]}, "row 1: arm must be text, found binary"),
        ({"eps": ["1", "one"]}, "row 2: eps must be a finite number of at least 0, found 'one'"),
    ],
)
def test_columns_of_another_type_are_refused(tmp_path: Path, column: dict[str, Any], complaint: str) -> None:
    table = pa.table({"model": ["a", "a"], "sample": [1, 2], "d_linf": [0.5, None]} | column)
    pq.write_table(table, tmp_path / "theirs.parquet")
    with pytest.raises(LedgerError) as caught:
        import_outcomes(tmp_path / "theirs.parquet", tmp_path / "run")
    assert f"theirs.parquet, {complaint}" in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.parquet").mkdir()
    for name, what in (("pipe.csv", "a pipe or a device"), ("folder.parquet", "a folder")):
        with pytest.raises(LedgerError, match=f"{name}: is {what}; give one file"):
            import_outcomes(tmp_path / name, tmp_path / "run")


def test_a_failure_leaves_a_ledger_as_it_was_and_no_new_one(imported: Import, tmp_path: Path) -> None:
    before = imported("model,sample,d_l2", "a,1,1")
    for folder in ("run", "new"):
        with pytest.raises(LedgerError, match="row 2: eps"):
            imported("model,sample,d_l2,eps", "b,1,1,1", "b,2,1,-1", into=folder)
    assert [segment.name for segment in (before.path / "segments").iterdir()] == [before._segments[0].name]
    assert rows(Ledger.open(tmp_path / "run"), "model") == [("a",)]
    with pytest.raises(LedgerError, match="holds no ledger"):
        Ledger.open(tmp_path / "new")


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """A dict for each of these rows takes 2.4 GB."""
    peaks = []
    for models in (1, 5):
        write(tmp_path / f"{models}.parquet", models, 10, 10_000)
        peaks.append(imported_in_a_child(tmp_path / f"{models}.parquet", tmp_path / str(models)).peak)
    assert peaks[1] < 0.8e9
    assert peaks[1] - peaks[0] < 0.3e9


KILLED = """
import os, signal, sys
from pathlib import Path
from advrisk.ledger.exchange import importing
step, source, run = sys.argv[1:]
real = getattr(importing, step)
def killed(*given, **named):
    if step == "publish":
        import advrisk.ledger.segments as segments
        segments.make_durable = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
        real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(importing, step, killed)
importing.import_outcomes(Path(source), Path(run))
"""


@pytest.mark.parametrize("step", ["table_from", "_refuse_twice", "_new_samples", "publish"])
def test_a_kill_leaves_nothing_that_counts_and_the_next_import_tidies_up(
    imported: Import, tmp_path: Path, step: str
) -> None:
    imported("model,sample,d_l2", "a,1,1")
    (tmp_path / "more.csv").write_text("model,sample,d_l2\nb,1,1\nb,2,1\n")
    command = [sys.executable, "-c", KILLED, step, tmp_path / "more.csv", tmp_path / "run"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    segments = tmp_path / "run" / "ledger" / "segments"
    assert len(list(segments.iterdir())) > 1, "something was left behind"
    assert rows(Ledger.open(tmp_path / "run"), "model", "sample") == [("a", "1")]
    assert import_outcomes(tmp_path / "more.csv", tmp_path / "run") == 2
    assert rows(Ledger.open(tmp_path / "run"), "model", "sample") == [("a", "1"), ("b", "1"), ("b", "2")]
    assert sorted(entry.name[:9] for entry in segments.iterdir()) == ["00000001-", "00000002-"]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.csv", None, "there is no such file"),
        ("none.parquet", None, "there is no such file"),
        ("bad.parquet", b"no parquet", "cannot be read as .parquet: "),
        ("bad.csv", b"model,sample,d_l2\n\xff\xfe,1,1\n", "cannot be read as .csv: "),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LedgerError) as caught:
        import_outcomes(tmp_path / name, tmp_path / "run")
    assert str(caught.value).startswith(f"{tmp_path / name}: {complaint}")


def test_a_distance_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"model": ["a"], "sample": ["1"], "d_l2": [float("nan")]}), tmp_path / "theirs.parquet")
    with pytest.raises(LedgerError, match="row 1: d_l2 must be a distance of at least 0, or empty, found nan"):
        import_outcomes(tmp_path / "theirs.parquet", tmp_path / "run")


def test_a_folder_that_is_being_written_to_is_refused(imported: Import, tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(LedgerError, match="is writing to this folder"):
        imported("model,sample,d_l2", "a,1,0.5")
