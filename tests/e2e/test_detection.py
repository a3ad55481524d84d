"""Detectors of a real study: `advrisk show detection RUN`, its files, and the report."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk import Run, Study
from advrisk.assess.detection.question import Detection
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.sections import slug
from advrisk.risk.detection.groups import MULTI_ARMED

from .conftest import Command, study_of


@pytest.fixture(scope="module")
def watched(nets: Path) -> dict[str, Any]:
    """Two detectors, two objectives, and a corruption that is no attack."""
    return study_of(nets) | {
        "arms": [
            {
                "attack": ["fgsm", "pgd"],
                "norm": "linf",
                "eps": [0.1, 0.2],
                "objective": ["ace", "gini"],
                "keep": "last",
            },
            {"attack": "deepfool", "norm": "l2"},
            {"corruption": "gaussian-noise", "sigma": 0.3},
        ],
        "detectors": ["confidence", {"name": "feature-squeezing", "bits": 2}],
        "data": {"source": "digits", "evaluate": 48, "calibrate": 100},
    }


@pytest.fixture(scope="module")
def finished(watched: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched") / "run"
    Study.from_dict(watched).run(folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


def test_the_terminal_the_files_and_python_say_the_same(run: Run, advrisk: Command, tmp_path: Path) -> None:
    found = run.detection()
    assert found.models == ("noisy", "plain")
    assert {one.name for one in found.tables} == {"confidence", "feature-squeezing,bits=2"}
    one = found.of("plain", "confidence")
    assert one.table.columns == ("ace", "gini", MULTI_ARMED)
    assert [row.label for row in one.table.rows] == ["l2 deepfool", "linf 0.1", "linf 0.2", "linf, average", "average"]
    assert not any("gaussian-noise" in arm.arm for arm in one.defeat.arms)

    summary = advrisk("show", "detection", "run", env={"COLUMNS": "80"})
    assert (summary.returncode, summary.stderr) == (0, "")
    assert max(map(len, summary.stdout.splitlines())) <= 80
    for table in found.tables:
        assert f"{table.overall.auroc.value:.3f}" in summary.stdout
        assert f"{table.overall.chance_auroc:.3f}" in summary.stdout
    assert "by group" not in summary.stdout, "groups are shown on demand"

    whole = advrisk(
        "show",
        "detection",
        "run",
        "--detector",
        "confidence",
        "--model",
        "plain",
        "--details",
        "--csv",
        "all.csv",
        env={"COLUMNS": "80"},
    )
    assert whole.returncode == 0, whole.stderr
    assert max(map(len, whole.stdout.splitlines())) <= 80
    for row in one.table.rows:
        assert row.label in whole.stdout
    with (tmp_path / "all.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert whole.stderr == f"{len(lines)} lines written to all.csv\n"
    last = next(line for line in lines if line["row"] == "average" and line["column"] == MULTI_ARMED)
    assert float(last["auroc"]) == one.overall.auroc.value
    assert float(last["auroc_low"]) == one.overall.auroc.low

    machine = json.loads(advrisk("show", "detection", "run", "--json").stdout)
    assert machine == json.loads(json.dumps(found.as_dict()))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--detector", "confidenc"], "no detector called 'confidenc' has scored this run; did you mean 'confidence'"),
        (["--model", "plan"], "no model called 'plan' was attacked in this run; did you mean 'plain'"),
        (["--arm", "pgb*"], "no arm is called 'pgb*'"),
        (["--threshold", "1", "--false-alarms", "0.1"], "give either --threshold, a score, or --false-alarms"),
        (["--false-alarms", "2"], "false_alarms is a share of clean inputs"),
        (["--norm", "linf"], "No such option: --norm"),
        (["--csv", "nowhere/all.csv"], "nowhere/all.csv: cannot be written: No such file or directory"),
    ],
)
def test_mistakes_are_named_without_a_traceback(run: Run, advrisk: Command, words: list[str], complaint: str) -> None:
    said = advrisk("show", "detection", "run", *words)
    assert said.returncode == 2
    assert complaint in said.stderr
    assert "Traceback" not in said.stderr


def test_several_detectors_may_be_named_for_detection_and_one_for_damage(run: Run, advrisk: Command) -> None:
    both = ["--detector", "feature-squeezing", "--detector", "confidence"]
    said = json.loads(advrisk("show", "detection", "run", *both, "--json").stdout)
    assert {one["detector"].partition("@")[0] for one in said["tables"]} == {"confidence", "feature-squeezing,bits=2"}
    one = json.loads(advrisk("show", "detection", "run", "--detector", "confidence", "--json").stdout)
    assert {one["detector"].partition("@")[0] for one in one["tables"]} == {"confidence"}
    for verb in (["show", "damage", "run"], ["select", "run"]):
        refused = advrisk(*verb, *both, "--false-alarms", "0.1")
        assert refused.returncode == 2
        assert "one detector at a time, found --detector feature-squeezing and confidence" in refused.stderr


def test_options_of_detection_are_for_detection(run: Run, advrisk: Command) -> None:
    said = advrisk("show", "arms", "run", "--tpr", "0.9", "--model", "plain")
    assert said.returncode == 2
    assert "No such option: --tpr" in said.stderr


@pytest.mark.slow
def test_a_detector_that_is_added_later_attacks_nothing_again(watched: dict[str, Any], tmp_path: Path) -> None:
    one = watched | {"detectors": ["confidence"]}
    before = Study.from_dict(one).run(tmp_path / "run")
    cells = before.query("SELECT cell, wall_s FROM cells ORDER BY cell").to_pylist()
    alone = before.detection()
    after = Study.from_dict(watched).run(tmp_path / "run")
    assert after.query("SELECT cell, wall_s FROM cells ORDER BY cell").to_pylist() == cells
    assert len(after.detection().tables) == 2 * len(alone.tables)
    assert after.detection().of("plain", "confidence").overall == alone.of("plain", "confidence").overall


def test_the_report_has_a_section(run: Run, tmp_path: Path) -> None:
    page = run.report(tmp_path / "report.html").read_text()
    assert '<section id="detection">' in page
    assert "What survives" not in page
    assert "No arm here knows a detector." in page
    for one in run.detection().tables:
        assert f"{one.overall.auroc.value:.3f}" in page
        assert f"{one.name} in front of {one.model}: every group" in page


def test_a_report_says_why_nothing_can_be_said_of_detectors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unscored(*_: object) -> None:
        raise RiskError("eye has not scored <3> samples")

    monkeypatch.setattr(Detection, "assess", unscored)
    page = run.report().read_text()
    assert "No answer: eye has not scored &lt;3&gt; samples." in page
    assert '<a href="#detection">' in page


def test_a_run_says_where_to_see_its_detectors(
    watched: dict[str, Any], advrisk: Command, write_study: Callable[..., Path]
) -> None:
    small = watched | {"data": {"source": "digits", "evaluate": 6, "calibrate": 10}, "arms": watched["arms"][1:2]}
    write_study(small | {"detectors": ["confidence"]})
    said = advrisk("run", "study.yaml", "--out", "run")
    assert said.returncode == 0, said.stderr
    assert said.stdout.endswith("detectors: advrisk show detection run\n")


def test_a_run_without_detectors_has_no_section_and_says_why(
    study: dict[str, Any], advrisk: Command, write_study: Callable[..., Path], tmp_path: Path
) -> None:
    run = Study.from_dict(study).run(tmp_path / "run")
    assert 'id="detection"' not in run.report().read_text()
    said = advrisk("show", "detection", "run")
    assert said.returncode == 2
    assert "no detector has scored this run; name one under `detectors` in the study and run it again" in said.stderr


def test_the_study_says_how_detectors_are_measured_and_arguments_override_it(run: Run) -> None:
    path = run.folder / "study.yaml"
    asked = {"tpr": 0.5, "false_alarms": 0.2, "level": 0.8, "resamples": 200, "arms": ["pgd*"]}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"assess": {"detection": asked}}))
    found = Run.open(run.folder).detection()
    assert (found.tpr, found.level, found.threshold) == (0.5, 0.8, {"false_alarms": 0.2})
    assert all(arm.arm.startswith("pgd") for one in found.tables for arm in one.defeat.arms)
    assert Run.open(run.folder).detection(tpr=0.9).tpr == 0.9
    with pytest.raises(StudyError, match="tpr"):
        Run.open(run.folder).detection(tpr=1.5)


def test_a_detector_that_left_the_study_is_not_shown_and_one_that_is_not_finished_is_named(
    watched: dict[str, Any], advrisk: Command, tmp_path: Path
) -> None:
    small = watched | {"data": {"source": "digits", "evaluate": 12, "calibrate": 20}, "arms": watched["arms"][1:2]}
    Study.from_dict(small).run(tmp_path / "run")
    more = [*small["arms"], {"attack": "fgsm", "norm": "linf", "eps": 0.3}]
    Study.from_dict(small | {"arms": more, "detectors": ["confidence"]}).run(tmp_path / "run")
    said = advrisk("show", "detection", "run")
    assert said.returncode == 0, said.stderr
    words = " ".join(said.stdout.split())
    assert "confidence" in words
    assert "feature-squeezing,bits=2" not in words
    named = advrisk("show", "detection", "run", "--detector", "feature-squeezing,bits=2")
    assert named.returncode == 2
    assert "has not scored" in named.stderr
    assert "Traceback" not in named.stderr
    sample = Run.open(tmp_path / "run").query("SELECT sample FROM outcomes WHERE kind = 'clean' LIMIT 1")["sample"][0]
    (tmp_path / "part.csv").write_text(f"detector,model,arm,sample,score\nvendor,plain,clean,{sample},0.5\n")
    assert advrisk("import", "part.csv", "run").returncode == 0
    said = advrisk("show", "detection", "run")
    assert said.returncode == 0, said.stderr
    assert "· Left out: vendor@" in " ".join(said.stdout.split())


def test_the_report_tells_of_arms_that_know_a_detector_where_no_other_was_tried(
    watched: dict[str, Any], tmp_path: Path
) -> None:
    knowing = {"attack": "adaptive", "norm": "linf", "eps": 0.3, "steps": 5, "rounds": 1, "detector": "confidence"}
    data = {"source": "digits", "evaluate": 12, "calibrate": 20}
    run = Study.from_dict(watched | {"data": data, "arms": [knowing], "detectors": ["confidence"]}).run(
        tmp_path / "run"
    )
    (survival,) = run.detection().of("plain", "confidence").table.adaptive
    assert survival.without.auroc is None
    assert survival.alone.auroc is not None
    page = run.report().read_text()
    assert "there is nothing to detect" not in page
    section = page.partition('<section id="detection">')[2].partition("</section>")[0]
    headline, _, answer = section.partition("</summary>")  # of the question itself, which is folded, too
    first = headline + re.sub(r"<details.*?</details>", "", answer, flags=re.DOTALL)
    assert "plain: 12 samples" in first
    assert "; 0 arms that know no detector, 1 that knows one." in first
    assert "No detector has an AUROC: no arm of the groups broke a sample." in first
    assert "What survives arms that know the detector" in first, "not folded away"
    assert f"{survival.alone.auroc.value:.3f}" in first
    assert f"1 arm, {survival.alone.n_broken} broken" in first


def test_one_group_is_shown_drawn_and_written(run: Run, advrisk: Command, tmp_path: Path) -> None:
    said = advrisk("show", "detection", "run", "--group", "linf-0.2", "--csv", "group.csv", env={"COLUMNS": "100"})
    assert said.returncode == 0, said.stderr
    entry = run.detection().of("plain", "confidence").table.row("linf 0.2").entries[MULTI_ARMED]
    assert f"plain, linf 0.2: {entry.n_arms} arms broke {entry.n_broken} of {entry.n_attackable} " in said.stdout
    with (tmp_path / "group.csv").open(newline="") as file:
        assert {line["row"] for line in csv.DictReader(file)} == {"linf 0.2"}
    machine = json.loads(advrisk("show", "detection", "run", "--group", "linf-0.2", "--json").stdout)
    assert {one["group"] for one in machine["tables"]} == {"linf 0.2"}
    wrong = advrisk("show", "detection", "run", "--group", "linf-0.3")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "there is no group 'linf-0.3'; did you mean 'linf 0." in wrong.stderr
    page = run.report(tmp_path / "report.html").read_text()
    for label in ("linf 0.1", "linf 0.2"):
        assert f'<option value="detection roc_plain_{slug(label)}">' in page
