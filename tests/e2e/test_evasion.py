"""`advrisk evasion` and `fit_evasion`: from answers in a file to a curve that other commands use."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk import Run, Study, fit_evasion
from advrisk.core.errors import LedgerError, RiskError
from advrisk.risk.evasion import evasion_notes, fit_bayesian, fit_logistic, fit_monotone, read_evasion

Command = Callable[..., Any]
GRID = np.linspace(0, 0.5, 11)


def write_answers(path: Path, *, apart: bool = False) -> tuple[list[float], list[bool]]:
    """80 answers of a detector that half of the changes of 0.1 escape; arm b is seen at a quarter of that, if apart."""
    rng = np.random.default_rng(2)
    sizes = np.round(rng.uniform(0.01, 0.3, 80), 4)
    arms = ["a", "b"] * 40
    middle = np.where([apart and arm == "b" for arm in arms], 0.025, 0.1)
    undetected = rng.random(80) < 1 / (1 + (sizes / middle) ** 4)
    rows = [f"{size},{str(bool(flag)).lower()},{arm}" for size, flag, arm in zip(sizes, undetected, arms, strict=True)]
    path.write_text("\n".join(["size,undetected,arm", *rows]))
    return sizes.tolist(), undetected.tolist()


def test_the_file_holds_the_curve_that_python_fits(advrisk: Command, tmp_path: Path) -> None:
    sizes, undetected = write_answers(tmp_path / "answers.csv")
    fits = {
        "bayesian": fit_bayesian(sizes, undetected, guess=None, lapse=None),
        "logistic": fit_logistic(sizes, undetected),
        "monotone": fit_monotone(sizes, undetected),
    }
    for name, expected in fits.items():
        done = advrisk("evasion", "answers.csv", "--fit", name, "--norm", "linf", "--out", f"{name}.json")
        assert done.returncode == 0, done.stderr
        assert read_evasion(tmp_path / f"{name}.json", norm="linf")(GRID).tolist() == expected(GRID).tolist()
    found = json.loads(advrisk("evasion", "answers.csv", "--json").stdout)
    assert (found["n"], found["n_undetected"], found["notes"]) == (80, sum(undetected), [])
    assert found["half"]["low"] < 0.1 < found["half"]["high"]
    assert not (tmp_path / "evasion.json").exists()


def test_a_doubt_is_kept_with_the_curve(tmp_path: Path) -> None:
    write_answers(tmp_path / "answers.csv", apart=True)
    found = fit_evasion(tmp_path / "answers.csv")
    assert len(found.notes) == 1
    assert "differ between a, b" in found.notes[0]
    assert evasion_notes(found.write(tmp_path / "curve.json")) == found.notes


def test_a_doubt_is_told_whenever_the_curve_is_used(advrisk: Command, tmp_path: Path) -> None:
    write_answers(tmp_path / "answers.csv", apart=True)
    fit_evasion(tmp_path / "answers.csv", norm="linf").write(tmp_path / "curve.json")
    (tmp_path / "theirs.csv").write_text("model,sample,distance\nm,1,0.1\nm,2,0.2\n")
    advrisk("import", "theirs.csv", "run", "--norm", "linf")
    assert "differ between a, b" in " ".join(advrisk("select", "run", "--evasion", "curve.json").stdout.split())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("size,undetected\n0.1,true\n", "found 1 answer, and a curve needs two or more"),
        ("size,undetected\n0.1,true\n0.2,yes\n", "ask about larger ones"),
        ("size,undetected\n0.1,no\n0.2,0\n", "ask about smaller ones"),
        ("size,undetected\n0.1,maybe\n", "row 1: undetected must be true or false"),
        ("size,undetected\n-0.1,true\n", "row 1: size must be a number of at least 0"),
        ("size,undetected\nnan,true\n", "size must be a number"),
        ("size,undetected\n,true\n", "size must be a number"),
        ("size,detected\n0.1,true\n", "did you mean 'undetected'"),
        ("size\n0.1\n", "the column 'undetected' is missing"),
        ("size,undetected\n", "holds no row"),
        ("size,undetected,arm\n0.1,true,\n", "arm is empty"),
    ],
)
def test_answers_of_no_use_are_refused(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from advrisk.cli import main

    (tmp_path / "bad.csv").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["advrisk", "evasion", "bad.csv", "--norm", "linf", "--out", "curve.json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"], "nothing half-written"


def test_settings_of_another_fit_are_refused(tmp_path: Path) -> None:
    write_answers(tmp_path / "answers.csv")
    with pytest.raises(RiskError, match="found guess, which belongs to the Bayesian fit"):
        fit_evasion(tmp_path / "answers.csv", fit="logistic", guess=0.1)
    with pytest.raises(RiskError, match="is a detector of a run"):
        fit_evasion(tmp_path / "answers.csv", detector={"name": "confidence", "threshold": 1})


def nearest_kept(run: Run, model: str) -> np.ndarray:
    """The nearest point that an attack kept of each sample: what the detector scored."""
    rows = run.query(
        "SELECT min(CASE outcome WHEN 'success' THEN d_linf WHEN 'already_wrong' THEN 0 ELSE 'inf'::DOUBLE END) AS d "
        f"FROM outcomes WHERE kind = 'attack' AND model = '{model}' GROUP BY sample"
    )
    return rows["d"].to_numpy()


def test_the_answers_of_a_detector_of_a_run(
    study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path
) -> None:
    study["detectors"] = ["confidence"]
    run = Study.load(write_study(study)).run(tmp_path / "run", workers=1)
    alarm = {"name": "confidence", "threshold": 0.4}
    answers, norm = run.detector_answers(alarm)
    found = fit_evasion(tmp_path / "run", detector=alarm)
    assert (found.norm, norm, found.n) == ("linf", "linf", len(answers.sizes))
    by_curve = {row.model: row.by_detector.by_curve for row in run.damage(detector=alarm).models if row.by_detector}
    curve = fit_bayesian(answers.sizes, answers.undetected, guess=None, lapse=None)
    for model, estimate in by_curve.items():
        assert estimate is not None
        assert estimate.value == pytest.approx(curve(nearest_kept(run, model)).mean())
    with pytest.raises(RiskError, match="--fit FILE"):
        fit_evasion(tmp_path / "run")


def test_answers_are_not_written_over_and_folders_are_no_files(advrisk: Command, tmp_path: Path) -> None:
    write_answers(tmp_path / "answers.csv")
    before = (tmp_path / "answers.csv").read_bytes()
    for target, complaint in (("answers.csv", "write the curve to another file"), (".", "is a folder")):
        done = advrisk("evasion", "answers.csv", "--norm", "linf", "--out", target)
        assert (done.returncode, complaint in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "answers.csv").read_bytes() == before
    assert "--out needs --norm" in advrisk("evasion", "answers.csv", "--out", "curve.json").stderr


def test_another_shape_is_doubted_and_the_advice_can_be_followed(advrisk: Command, tmp_path: Path) -> None:
    """Plateaus of 1, 0.6 and 0.1: neither logistic nor Bayesian, but falling."""
    sizes = np.repeat(np.geomspace(0.01, 0.5, 30), 10)
    level = np.where(sizes < 0.03, 10, np.where(sizes < 0.2, 6, 1))
    undetected = np.arange(300) % 10 < level
    rows = [f"{size:.6g},{int(flag)}" for size, flag in zip(sizes, undetected, strict=True)]
    (tmp_path / "plateaus.csv").write_text("\n".join(["size,undetected", *rows]))
    done = advrisk("evasion", "plateaus.csv", "--norm", "linf", "--out", "curve.json", "--json")
    found = json.loads(done.stdout)
    assert found["shape"]["p_value"] <= 0.01
    (note,) = found["notes"]
    assert "do not have the shape" in note
    assert "`--fit monotone`" in note
    (tmp_path / "theirs.csv").write_text("model,sample,distance\nm,1,0.1\nm,2,0.2\n")
    advrisk("import", "theirs.csv", "run", "--norm", "linf")
    assert note in " ".join(advrisk("select", "run", "--evasion", "curve.json").stdout.split())
    assert note in json.loads(advrisk("select", "run", "--evasion", "curve.json", "--json").stdout)["notes"]
    assert advrisk("report", "run").returncode == 0
    free = fit_evasion(tmp_path / "plateaus.csv", fit="monotone")
    assert (free.shape, free.notes) == (None, ())


def test_a_shape_that_is_not_doubted_is_said(advrisk: Command, tmp_path: Path) -> None:
    write_answers(tmp_path / "answers.csv")
    shown = " ".join(advrisk("evasion", "answers.csv").stdout.split())
    assert "The answers are consistent with the shape of the curve (p = " in shown


def test_answers_the_wrong_way_round_are_doubted(tmp_path: Path) -> None:
    (tmp_path / "rising.csv").write_text("size,undetected\n0.1,no\n0.2,no\n0.3,yes\n0.4,yes\n")
    assert "wrong way round" in fit_evasion(tmp_path / "rising.csv").notes[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("size;undetected\n1;0\n", "by commas"), ("size,size,undetected\n1,2,0\n", "stands here twice")],
)
def test_files_that_are_no_table_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "odd.csv").write_text(text)
    with pytest.raises(LedgerError, match=complaint):
        fit_evasion(tmp_path / "odd.csv")
