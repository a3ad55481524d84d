"""Scores from elsewhere: each put where it belongs, and refused by row where it belongs nowhere."""

from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.ledger.exchange.score_file import ImportedScores, holds_scores, import_scores, incomplete
from advrisk.ledger.known_detectors import read_known_detectors, write_study_detectors

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
        ("eye@1,a,push,1,1", "a detector needs a name without '@', ',' and slashes, found 'eye@1'"),
        ('"eye,1",a,push,1,1', "a detector needs a name without '@', ',' and slashes, found 'eye,1'"),
        ("eye,a,clean,1,2", "model a, arm clean, sample 1 is scored twice by eye"),
        ("eye,a,push,1,high", "row 2: score must be a number, found 'high'"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_kept(run: Path, line: str, words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        load(run, "eye,a,clean,1,1", line)
    assert Ledger.open(run).query("SELECT count(*) AS n FROM scores")["n"].to_pylist() == [0]


def test_wrong_columns_are_named(run: Path) -> None:
    with pytest.raises(
        LedgerError, match="unknown column 'modle'; the column 'model' is missing; did you mean 'model'"
    ):
        load(run, "eye,a,push,1,1", header="detector,modle,arm,sample,score")
    with pytest.raises(LedgerError, match="the column 'arm' is missing"):
        load(run, "eye,a,1,1", header="detector,model,sample,score")
    with pytest.raises(LedgerError, match="the column 'score' is missing"):
        load(run, "eye,a,push,1", header="detector,model,arm,sample")
    with pytest.raises(LedgerError, match="unknown column 'det'; the column 'detector' is missing; known: arm, det"):
        load(run, "eye,a,push,1,1", header="det,model,arm,sample,score")
    with pytest.raises(LedgerError, match="holds no row"):
        load(run)


@pytest.mark.parametrize(("repeat", "found"), [("0.5", "0.5"), ("one", "'one'")])
def test_a_repeat_that_is_no_whole_number_is_named_with_its_row(run: Path, repeat: str, found: str) -> None:
    with pytest.raises(LedgerError, match=f"row 2: repeat must be a whole number, found {found}"):
        load(run, "eye,a,clean,1,1,0", f"eye,a,push,1,1,{repeat}", header=f"{HEADER},repeat")


def test_what_an_evaluation_lacks_is_counted_and_said(run: Path) -> None:
    """The run has two clean inputs and one success; of the arm that resisted nothing is needed."""
    part = load(run, "eye,a,clean,1,1", "nose,a,clean,1,1", "nose,a,clean,2,1", "nose,a,push,1,1")
    eye, _ = part.detectors
    assert (part.missing, part.uncalibrated) == ({eye: 2}, {})
    (sentence,) = incomplete(part, run)
    assert sentence.startswith(f"{eye} has not scored 2 inputs of this run (clean ones or successes)")
    assert f"`advrisk export {run} to-score.npz --to-score`" in sentence


def test_what_is_to_be_calibrated_is_counted_apart(run: Path) -> None:
    ledger = Ledger.open(run)
    ledger.append({"samples": table_from("samples", {"sample": ["c"], "split": ["calibrate"], "weight": [1.0]})})
    clean = ledger.query("SELECT * REPLACE ('study' AS origin) FROM arms WHERE kind = 'clean'").to_pydict()
    ledger.append({"arms": table_from("arms", clean)})
    rows = "eye,a,clean,1,1", "eye,a,clean,2,1", "eye,a,push,1,1"
    part = load(run, *rows)
    assert (part.missing, part.uncalibrated) == ({}, {part.detectors[0]: 1})
    assert "has not scored 1 input set aside to calibrate" in incomplete(part, run)[0]
    whole = load(run, *rows, "eye,a,clean,c,1")
    assert (whole.missing, whole.uncalibrated, incomplete(whole, run)) == ({}, {}, [])


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(f"{HEADER}\neye,a,push,1,1\n")
    with pytest.raises(LedgerError):
        import_scores(tmp_path / "scores.csv", tmp_path / "nothing")
