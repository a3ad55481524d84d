"""Scores from elsewhere: each put where it belongs, and refused by row where it belongs nowhere."""

from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger
from advrisk.ledger.importing import import_outcomes
from advrisk.ledger.known_detectors import read_known_detectors, write_study_detectors
from advrisk.ledger.score_file import ImportedScores, holds_scores, import_scores

HEADER = "detector,model,arm,sample,score"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lines = ["model,sample,arm,kind,distance,norm", "a,1,clean,clean,,l2", "a,2,clean,clean,,l2"]
    lines += ["a,1,push,attack,0.5,l2", "a,2,push,attack,,l2"]
    (tmp_path / "outcomes.csv").write_text("\n".join(lines))
    import_outcomes(tmp_path / "outcomes.csv", tmp_path / "run")
    return tmp_path / "run"


def load(run: Path, *lines: str, header: str = HEADER) -> ImportedScores:
    file = run.parent / "scores.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    assert holds_scores(file)
    return import_scores(file, run)


def test_a_score_stands_under_the_cell_of_its_outcome(run: Path) -> None:
    found = load(run, "eye,a,clean,1,0.25", "eye,a,clean,2,0.5", "eye,a,push,1,-3", "nose,a,push,1,7")
    assert (found.n_scores, found.n_left_out) == (4, 0)
    assert [name.partition("@")[0] for name in found.detectors] == ["eye", "nose"]
    rows = Ledger.open(run).query(
        "SELECT s.detector, o.arm, o.sample, s.score FROM scores s JOIN outcomes o USING (cell, sample) ORDER BY ALL"
    )
    eye, nose = found.detectors
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (eye, "clean", "1", 0.25),
        (eye, "clean", "2", 0.5),
        (eye, "push", "1", -3.0),
        (nose, "push", "1", 7.0),
    ]


def test_other_scores_are_another_detector_and_the_same_are_refused(run: Path) -> None:
    first = load(run, "eye,a,push,1,1")
    assert load(run, "eye,a,push,1,2").detectors != first.detectors
    with pytest.raises(LedgerError, match=f"already holds these scores of {first.detectors[0]}"):
        load(run, "eye,a,push,1,1")


def test_the_order_of_rows_says_nothing(run: Path) -> None:
    rows = ["eye,a,clean,1,0.25", "eye,a,push,1,-3"]
    load(run, *rows)
    with pytest.raises(LedgerError, match="already holds these scores"):
        load(run, *reversed(rows))


def test_a_name_of_the_studys_own_is_refused(run: Path) -> None:
    write_study_detectors(run, ["eye@12345678"])
    with pytest.raises(LedgerError, match="the study has a detector called 'eye'; give the imported one another name"):
        load(run, "eye,a,push,1,1")
    load(run, "nose,a,push,1,1")
    known = read_known_detectors(run)
    assert known is not None
    assert [name.partition("@")[0] for name in known.all] == ["eye", "nose"]


def test_inputs_that_did_not_succeed_are_left_out_and_counted(run: Path) -> None:
    assert load(run, "eye,a,push,1,1", "eye,a,push,2,1").n_left_out == 1
    with pytest.raises(LedgerError, match="none of these inputs is clean or a success"):
        load(run, "eye,a,push,2,1")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("eye,b,push,1,1", "row 2: the run holds nothing of model b, arm push, sample 1: no model is called 'b'"),
        ("eye,a,pusch,1,1", "no arm is called 'pusch'; did you mean 'push'"),
        ("eye,a,push,9,1", r"arm push, sample 9: it tried no such sample \(1 such row\)"),
        ("eye,a,push,1,nan", "row 2: a score must be finite, found nan"),
        ("eye,a,push,1,", "row 2: score is empty"),
        (",a,push,1,1", "row 2: detector is empty"),
        ("eye@1,a,push,1,1", "a detector needs a name without '@', found 'eye@1'"),
        ("eye,a,clean,1,2", "model a, arm clean, sample 1 is scored twice by eye"),
        ("eye,a,push,1,high", "score must hold numbers, found string"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_kept(run: Path, line: str, words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        load(run, "eye,a,clean,1,1", line)
    assert Ledger.open(run).query("SELECT count(*) AS n FROM scores")["n"].to_pylist() == [0]


def test_wrong_columns_are_named(run: Path) -> None:
    with pytest.raises(LedgerError, match="unknown column 'modle'; did you mean 'model'"):
        load(run, "eye,a,push,1,1", header="detector,modle,arm,sample,score")
    with pytest.raises(LedgerError, match="the column 'arm' is missing"):
        load(run, "eye,a,1,1", header="detector,model,sample,score")
    with pytest.raises(LedgerError, match="holds no row"):
        load(run)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(f"{HEADER}\neye,a,push,1,1\n")
    with pytest.raises(LedgerError):
        import_scores(tmp_path / "scores.csv", tmp_path / "nothing")
