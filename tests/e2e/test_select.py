"""`advrisk select` and the evasion curve of a study, as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk import Run, Study
from advrisk.core.errors import RiskError, StudyError
from advrisk.risk.evasion import fit_bayesian, threshold, write_evasion

Command = Callable[..., Any]

SIZES = np.linspace(0.02, 0.4, 24)
ANSWERS = [size < 0.2 or place % 5 == 0 for place, size in enumerate(SIZES)]


def evasion_text(**fields: Any) -> str:
    return json.dumps({"advrisk": "evasion", "version": 1, **fields})


@pytest.fixture
def curve_file(tmp_path: Path) -> Path:
    path = tmp_path / "curves" / "people.json"
    path.parent.mkdir()
    write_evasion(path, fit_bayesian(SIZES, ANSWERS), norm="linf")
    return path


@pytest.fixture
def theirs(tmp_path: Path, advrisk: Command) -> Path:
    """An imported run: `strong` is never broken, `weak` always, `close` nearly as often, on 60 samples."""
    rows = ["model,sample,distance"]
    for sample in range(60):
        rows += [f"strong,{sample},", f"weak,{sample},0.1", f"close,{sample},{0.11 if sample else 0.09}"]
    (tmp_path / "theirs.csv").write_text("\n".join(rows))
    assert advrisk("import", "theirs.csv", "theirs", "--norm", "linf").returncode == 0
    return tmp_path / "theirs"


def test_the_model_to_ship_is_named(advrisk: Command, theirs: Path) -> None:
    done = advrisk("select", "theirs", "--evasion", "0.2", "--cost", "25000")
    assert done.returncode == 0
    told = " ".join(done.stdout.split())
    assert told.startswith("strong is the least bad of 3 models: damage probability 0.0 %, ")
    found = json.loads(advrisk("select", "theirs", "--evasion", "0.2", "--cost", "25000", "--json").stdout)
    assert (found["ship"], found["relative"], found["cost"]) == ("strong", False, 25000)
    costs = {row["model"]: row["operational_risk"]["value"] for row in found["models"]}
    assert costs == {"strong": 0, "weak": 25000, "close": 25000}


def test_undecided_is_an_exit_code_of_its_own(advrisk: Command, theirs: Path) -> None:
    done = advrisk("select", "theirs", "--evasion", "0.05")
    assert done.returncode == 4
    assert done.stdout.startswith("Undecided between ")


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 120, 160, 240])
def test_the_table_fits_every_terminal(advrisk: Command, theirs: Path, columns: int) -> None:
    width = {"COLUMNS": str(columns)}
    shown = advrisk("select", "theirs", "--evasion", "0.2", "--cost", "3", "--eps", "8/255", env=width).stdout
    assert max(map(len, shown.splitlines())) <= columns
    for whole in ("100.0 %", "[94.0, 100.0]", "least damage", "8/255", "more damage than"):
        assert whole.replace(" ", "") in "".join(shown.split()), "no number is cut"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--cost", "3"], "no evasion curve"),
        (["--evasion", "average", "--cost", "3"], "no evasion curve"),
        (["--evasion", "nobody.json"], "nobody.json: the evasion curve cannot be read"),
        (["--evasion", "-1"], "at least 0"),
        (["--evasion", "0.1", "--cost", "-3"], "at least 0"),
        (["--norm", "l2"], "a success has no l2 distance"),
        (["--eps", "much"], "a number or a fraction"),
        (["--arm", "nobody"], "no arm is called"),
    ],
)
def test_mistakes_are_named(advrisk: Command, theirs: Path, options: list[str], complaint: str) -> None:
    done = advrisk("select", "theirs", *options)
    assert done.returncode == 2, done.stdout
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_run_is_a_mistake(advrisk: Command) -> None:
    done = advrisk("select", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")


def test_convergence_is_shown_and_told(advrisk: Command, theirs: Path) -> None:
    shown = advrisk("show", "convergence", "theirs", "--evasion", "0.2").stdout
    assert "damage probability" in shown
    found = json.loads(advrisk("show", "convergence", "theirs", "--json").stdout)
    assert found["n"][-1] == 60
    assert found["relative"]


def test_a_study_names_its_curve_and_the_run_keeps_it(
    study: dict[str, Any], write_study: Callable[..., Path], curve_file: Path, tmp_path: Path
) -> None:
    study["assess"]["damage"] |= {"evasion": "curves/people.json", "cost": "50/2"}
    run = Study.load(write_study(study)).run(tmp_path / "run", workers=1)
    found = run.damage()
    assert not found.relative
    expected = run.damage(evasion=fit_bayesian(SIZES, ANSWERS), cost=25.0)
    assert [row.damage for row in found.models] == [row.damage for row in expected.models]
    assert [row.operational_risk for row in found.models] == [row.operational_risk for row in expected.models]
    curve_file.unlink()
    (tmp_path / "run").rename(tmp_path / "moved")
    again = Run.open(tmp_path / "moved")
    assert again.damage().as_dict() == found.as_dict()
    relative = again.damage(evasion="average")
    assert relative.relative
    assert any("cost of 25 is left out" in note for note in relative.notes)
    text = again.report().read_text()
    assert "damage probability" in text
    assert "cost of an attacked input" in text
    with pytest.raises(RiskError, match="the study's evasion curve is for linf"):
        again.damage(norm="l2")
    assert not again.damage(norm="l2", evasion=threshold(0.5)).relative


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read"),
        ("{", "not a JSON file"),
        (evasion_text(norm="l2", kind="threshold", tau=1), "ask a detector in linf"),
        (evasion_text(norm="linf", kind="average", models=["a"], distances=[1]), "stands in for a detector"),
    ],
)
def test_a_curve_of_no_use_is_refused_before_anything_runs(
    study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path, content: str | None, complaint: str
) -> None:
    study["assess"]["damage"]["evasion"] = "mine.json"
    if content is not None:
        (tmp_path / "mine.json").write_text(content)
    file = write_study(study)
    with pytest.raises(StudyError, match=complaint) as caught:
        Study.load(file).run(tmp_path / "run", workers=1)
    assert str(caught.value).startswith(f"{file}:")
    assert "assess.damage.evasion" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_size_beyond_the_data_is_refused_wherever_it_is_asked(
    study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path, advrisk: Command, theirs: Path
) -> None:
    run = Study.load(write_study(study)).run(tmp_path / "run", workers=1)
    complaint = (
        "evasion: found 4 on data in [0, 1]; no two inputs are farther apart than 1 in linf; did you mean 4/255?"
    )
    for command in (["select", "run"], ["show", "damage", "run"], ["show", "convergence", "run"],
                    ["report", "run", "--json"], ["gate", "run", "--require", "damage.plain <= 0.5"],
                    ["compare", "run", "run"]):  # fmt: skip
        done = advrisk(*command, "--evasion", "4")
        assert (done.returncode, done.stdout) == (2, ""), command
        assert done.stderr.startswith(f"advrisk: {complaint}"), "no file is to blame"
    for evasion in (4, "4", threshold(4)):
        with pytest.raises(StudyError, match="did you mean 4/255"):
            run.damage(evasion=evasion)
        with pytest.raises(StudyError, match="did you mean 4/255"):
            run.compare(run, evasion=evasion)
    with pytest.raises(StudyError, match=r"thresholds: found 8 .* did you mean 8/255"):
        run.damage(thresholds=[8])
    assert advrisk("select", "run", "--eps", "8").returncode == 2
    assert advrisk("compare", "run", "run", "--eps", "8").returncode == 2
    assert not run.damage(evasion=1).relative
    assert not run.damage(norm="l2", evasion=4).relative, "in l2 inputs are up to 8 apart"
    assert advrisk("select", "theirs", "--evasion", "4").returncode != 2, "nothing says where their data lies"


def test_the_average_of_one_model_is_refused_before_anything_runs(
    study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path
) -> None:
    study["assess"]["damage"]["evasion"] = "average"
    del study["models"]["noisy"]
    with pytest.raises(StudyError, match="add a model, or name a file with an evasion curve"):
        Study.load(write_study(study)).run(tmp_path / "run", workers=1)


@pytest.fixture
def guarded(study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path) -> Run:
    """A run whose detector may raise an alarm at one clean input in ten."""
    study["data"] |= {"calibrate": 64}
    study["detectors"] = ["confidence"]
    study["assess"]["damage"] |= {"detector": {"name": "confidence", "false_alarms": 0.1}, "cost": 10}
    return Study.load(write_study(study)).run(tmp_path / "run", workers=1)


def test_a_detector_is_asked_about_the_attacks(guarded: Run, advrisk: Command) -> None:
    found = guarded.damage()
    assert not found.relative
    assert found.detector is not None
    for row in found.models:
        assert row.damage is not None
        assert row.by_detector is not None
        assert row.damage == row.by_detector.any_arm
        assert row.operational_risk is not None
        assert row.operational_risk.value == 10 * row.damage.value
        alarms = found.detector.damaged[row.model]
        assert row.damage.value == alarms.mean()
    never = guarded.damage(detector={"name": "confidence", "threshold": 1.0})
    for row in never.models:
        broken = (found.distances.by_model[row.model] < np.inf).mean()
        assert row.damage is not None
        assert row.damage.value == broken, "without an alarm every success does damage"
    beside = guarded.damage(evasion=0.1)
    assert {row.model: row.by_detector for row in beside.models} == {row.model: row.by_detector for row in found.models}
    assert all(row.damage.value <= row.success_ratio[0.1].value for row in beside.models if row.damage)
    shown = advrisk("select", "run", "--detector", "confidence", "--threshold", "1", "--json")
    told = {row["model"]: row["damage"]["value"] for row in json.loads(shown.stdout)["models"]}
    assert told == {row.model: row.damage.value for row in never.models if row.damage}
    text = guarded.report().read_text()
    assert "by its fitted curve" in text
    assert guarded.convergence().bands["plain"]["damage"].middle[-1] > 0


def test_a_detector_that_is_not_there_is_a_mistake(guarded: Run, advrisk: Command) -> None:
    for options, complaint in (
        (["--detector", "confidence"], "found neither"),
        (["--detector", "confidence", "--threshold", "1", "--false-alarms", "0.1"], "found both"),
        (["--threshold", "1"], "add --detector NAME"),
        (["--detector", "confidense", "--threshold", "1"], "did you mean 'confidence"),
        (["--detector", "confidence", "--false-alarms", "1.5"], "false_alarms"),
    ):
        done = advrisk("select", "run", *options)
        assert (done.returncode, complaint in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("detectors", "complaint"), [([], "add `detectors: "), (["confidence"], "did you mean 'confidence'")]
)
def test_a_study_is_refused_whose_detector_does_not_score(
    study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path, detectors: list[str], complaint: str
) -> None:
    study["detectors"] = detectors
    study["assess"]["damage"]["detector"] = {"name": "confidense", "threshold": 0.5}
    with pytest.raises(StudyError, match=complaint) as caught:
        Study.load(write_study(study)).run(tmp_path / "run", workers=1)
    assert "assess.damage.detector.name" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_report_is_not_written_over_when_the_curve_is_lost(
    study: dict[str, Any], write_study: Callable[..., Path], curve_file: Path, tmp_path: Path
) -> None:
    study["assess"]["damage"]["evasion"] = "curves/people.json"
    run = Study.load(write_study(study)).run(tmp_path / "run", workers=1)
    before = run.report().read_bytes()
    (tmp_path / "run" / "evasion.json").unlink()
    with pytest.raises(RiskError, match="cannot be read"):
        Run.open(tmp_path / "run").report()
    assert (tmp_path / "run" / "report.html").read_bytes() == before


def test_a_database_of_answers_that_cannot_be_read_stops_no_decision(advrisk: Command, theirs: Path) -> None:
    (theirs / "answers.sqlite").write_bytes(b"no database" * 100)
    done = advrisk("select", "theirs", "--evasion", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    assert any("Answers of people are left out" in sentence for sentence in json.loads(done.stdout)["findings"])
    assert advrisk("select", "theirs", "--answers", f"sqlite:///{theirs / 'answers.sqlite'}").returncode == 2


def test_an_average_and_a_detector_are_one_too_many(advrisk: Command, theirs: Path) -> None:
    done = advrisk("select", "theirs", "--evasion", "average", "--detector", "confidence", "--threshold", "1")
    assert (done.returncode, "choose one" in done.stderr) == (2, True)
