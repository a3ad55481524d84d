"""Requirements and comparisons as a pipeline meets them: exit codes, files, and refusals before anything runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from typer.main import get_command

from advrisk import Run, Study
from advrisk.assess.gate.question import Gate
from advrisk.cli.app import app
from advrisk.core.errors import RiskError
from advrisk.core.plain import plain
from advrisk.risk.paired_share import share_difference
from advrisk.study import AlarmSpec
from advrisk.study.assess import SurvivalSpec

from .conftest import Command, study_of

SCENARIOS = {"noisy-day": {"gaussian-noise": 0.5}}


@pytest.fixture(scope="module")
def folder(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a detector, a scenario and requirements."""
    content = study_of(nets)
    content["data"]["calibrate"] = 32
    content["assess"]["certificate"] = {"alpha": 0.6, "zeta": 0.2}
    content |= {"detectors": ["confidence"], "scenarios": SCENARIOS, "gate": ["broken.* at 0.2 <= 100 %"]}
    return Study.from_dict(content).run(tmp_path_factory.mktemp("gate") / "run").folder


def test_a_requirement_that_nobody_can_meet_or_miss_is_refused_before_anything_runs(
    study: dict[str, Any], write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    for text, complaint in (
        ("broken.plian at 0.2 <= 0.5", "did you mean 'plain'?"),
        ("broken.plain at 0.5 <= 0.5", "no attack in linf reaches the size 0.5"),
        ("damage.plain <= 0.5", "no probability"),
        ("auroc.lid[plain] >= 0.5", "unknown detector 'lid'"),
        ("risk.plain <= 0.5", "found no scenario"),
        ("certificate.plain", "found no certificate"),
        ("error_rows <= 50 %", "is a count"),
    ):
        file = write_study(study | {"gate": ["error_rows == 0", text]})
        done = advrisk("run", file, "--out", "refused")
        assert done.returncode == 2
        assert f"{file}:" in done.stderr
        assert "gate[1]: " in done.stderr
        assert complaint in done.stderr
        assert not (tmp_path / "refused").exists()


def test_every_quantity_is_what_the_run_itself_tells(folder: Path) -> None:
    run = Run.open(folder)
    damage, detection = run.damage(evasion=0.15), run.detection()
    indicators, survival = run.indicators(), run.survival()
    asked = {
        "damage.plain <= 0.9": damage.estimates["plain"],
        "broken.plain at 0.2 <= 0.9": damage.models[0].success_ratio[0.2]
        if damage.models[0].model == "plain"
        else damage.models[1].success_ratio[0.2],
        "risk.plain <= 0.9": next(row.risk for row in indicators.results[0].models if row.model == "plain"),
        "auroc.confidence[plain] >= 0.1": detection.of("plain", "confidence").overall.auroc,
        "fpr.confidence[noisy] <= 0.9": detection.of("noisy", "confidence").overall.fpr_at_tpr,
        "survival.plain >= 1": survival.of("plain").mean,
        "risk.plain <= risk.noisy + 1": indicators.results[0].branches[""].difference("plain", "noisy"),
    }
    found = {one.requirement: one.estimate for one in run.gate(list(asked), evasion=0.15).results}
    for text, estimate in asked.items():
        assert found[text] == estimate


def test_exit_codes_and_files(folder: Path, advrisk: Command, tmp_path: Path) -> None:
    done = advrisk("gate", folder, "--junit", "out/gate.xml", "--markdown", "out/gate.md")
    assert done.returncode == 0
    assert "Gate of digits-study: pass (2 pass)" in done.stdout
    suite = ElementTree.parse(tmp_path / "out" / "gate.xml").getroot()[0]
    assert suite.get("tests") == "2"
    assert (tmp_path / "out" / "gate.md").read_text().startswith("### ✅")
    failed = advrisk(
        "gate", folder, "--require", "clean_accuracy.* >= 99.9 %", "--require", "broken.plain at 0.2 <= 1 %"
    )
    assert failed.returncode == 1
    value = Run.open(folder).gate("clean_accuracy.plain >= 0").results[-1].estimate
    assert value is not None
    unsure = advrisk("gate", folder, "--require", f"clean_accuracy.plain >= {(value.low + value.high) / 2}", "--json")
    facts = json.loads(unsure.stdout)
    assert (unsure.returncode, facts["verdict"], facts["counts"]["undecided"]) == (4, "undecided", 1)
    printed = advrisk("gate", folder, "--markdown", "-")
    assert printed.stdout.startswith("### ✅")
    assert advrisk("gate", folder, "--markdown", "-", "--json").returncode == 2
    narrow = advrisk("gate", folder, env={"COLUMNS": "50"})
    assert max(map(len, narrow.stdout.splitlines())) <= 50


def test_a_mistake_has_no_traceback(folder: Path, advrisk: Command) -> None:
    for words in (
        ("--require", "broken.plain at 0.2 <="),
        ("--require", "import os"),
        ("--level", "95", "--require", "error_rows == 0"),
        ("--junit", str(folder), "--require", "error_rows == 0"),
    ):
        done = advrisk("gate", folder, *words)
        assert done.returncode == 2, words
        assert "Traceback" not in done.stderr


def test_no_model_is_named_to_ship_that_fails_what_is_required(
    study: dict[str, Any], write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    study["gate"] = ["clean_accuracy.* >= 100 %", "robust_accuracy.* at 0.2 >= 99.9 %"]
    run = Study.load(write_study(study)).run(tmp_path / "run", workers=1)
    done = advrisk("select", "run", "--json")
    told = json.loads(done.stdout)
    assert told["headline"].startswith("None of these 2 models meets ")
    assert (told["ship"], told["requirements"], done.returncode) == (None, "not met", 1)
    record = run.record()
    assert (record["headline"], record["ship"], record["gate"]["verdict"]) == (told["headline"], None, "fail")
    assert record["executive"]["ship"][0] == told["headline"]
    assert '"ship": "' not in json.dumps(record), "nor anywhere else in it"


def test_an_old_run_against_a_new_one(folder: Path, advrisk: Command) -> None:
    same = advrisk("compare", folder, folder, "--margin", "20 %", "--evasion", "0.15", "--json")
    facts = json.loads(same.stdout)
    assert (same.returncode, facts["verdict"]) == (0, "identical")
    told = {row["quantity"] for row in facts["results"]}
    assert told == {
        "clean accuracy",
        "robust accuracy at 0.1",
        "robust accuracy at 0.2",
        "damage",
        "risk, noisy-day, misclassified",
    }
    assert all(row["worse_by"]["value"] == 0 for row in facts["results"])
    assert advrisk("compare", folder, folder).returncode == 0, "the same model, whatever the margin"
    other = advrisk("compare", folder, folder, "--model", "plain=noisy", "--markdown", "-", "--margin", "0.1")
    assert other.stdout.startswith("### ")
    assert advrisk("compare", folder, folder, "--model", "plain").returncode == 2
    assert advrisk("compare", folder, folder, "--margin", "much").returncode == 2
    twice = advrisk("compare", folder, folder, "--model", "plain=noisy", "--model", "plain=plain")
    assert (twice.returncode, "names the old model plain twice" in twice.stderr) == (2, True)
    assert advrisk("compare", folder, folder, "--eps", "-1").returncode == 2
    for words in (("--eps", "0.9"), ("--norm", "l2"), ("--arm", "gaussian-noise*")):
        other = ("--model", "plain=noisy", "--margin", "90 %")
        assert advrisk("compare", folder, folder, *other, *words).returncode == 4, words
    assert advrisk("compare", folder, folder, "--margin", "20 %", "--arm", "*linf*").returncode == 0
    assert advrisk("compare", folder, folder, "--arm", "nothing").returncode == 2


def test_the_workflow_in_the_docs_is_the_file_beside_them() -> None:
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "examples" / "advrisk-gate.yml").read_text()
    assert f'```yaml title="advrisk-gate.yml"\n{text}```' in (docs / "gate.md").read_text()
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    commands = [step["run"].split() for step in steps if step.get("run", "").startswith("advrisk ")]
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    assert [words[1] for words in commands] == ["run", "gate", "compare"]
    for _, verb, *words in commands:
        assert verbs[verb].make_context(verb, words).params
    with pytest.raises(Exception, match="No such option"):
        verbs["gate"].make_context("gate", ["runs/new", "--junits", "gate.xml"])


def test_the_report_tells_of_the_gate(folder: Path, tmp_path: Path) -> None:
    page = Run.open(folder).report(tmp_path / "page.html").read_text()
    assert 'id="gate"' in page
    assert "Gate of digits-study: pass (2 pass)" in page


def test_a_run_that_has_not_begun_does_not_pass(
    nets: Path, write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    content = study_of(nets) | {"gate": ["broken.plain at 0.2 <= 99 %", "clean_accuracy.plain >= 1 %", "flagged <= 9"]}
    Study.from_dict(content).run(tmp_path / "stopped", max_time="0s")
    done = advrisk("gate", "stopped", "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["verdict"]) == (4, "undecided")
    assert {row["verdict"] for row in facts["results"]} == {"undecided"}
    assert facts["notes"] == ["The run is not finished: 0 of 56 cells are done."]
    done = advrisk("select", "stopped", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["ship"], told["decided"]) == (4, None, False)
    assert told["headline"] == "Decide nothing yet: the run is not finished (0 of 56 cells are done)."
    assert advrisk("select", "stopped").returncode == 4


def test_certificates_decide_themselves(folder: Path) -> None:
    run = Run.open(folder)
    told = run.certificate()
    for model in ("plain", "noisy"):
        for one in told.of(model).lists:
            found = run.gate(f"certificate.{model} at {one.eps} with caveats").results[-1]  # after the study's own
            lists = [own for own in told.of(model).lists if own.eps == one.eps]
            assert found.verdict == ("pass" if all(own.certified for own in lists) else "fail")
        whole = run.gate(f"certificate.{model} with caveats").results[-1]
        assert whole.verdict == ("pass" if all(own.certified for own in told.of(model).lists) else "fail")
    assert {one.certified for one in told.lists} == {True, False}  # both are seen


def test_damage_with_a_detector(folder: Path) -> None:
    run = Run.open(folder)
    assert run.study is not None
    alarm = AlarmSpec(name="confidence", false_alarms=0.1)
    damage = run.study.assess.damage.model_copy(update={"detector": alarm})
    asked = run.study.model_copy(update={"assess": run.study.assess.model_copy(update={"damage": damage})})
    watched = Run(folder, run.ledger, asked)
    found = watched.gate(["damage.plain <= 1", "damage.plain <= damage.noisy + 0.9"]).results[-2:]
    told = watched.damage()
    assert found[0].estimate == told.estimates["plain"]
    first, second = (told.detector.damaged[model] for model in ("plain", "noisy"))  # type: ignore[union-attr]
    up, down = int((first & ~second).sum()), int((second & ~first).sum())
    assert found[1].estimate == share_difference(up, down, 64)
    rows = {row.quantity: row for row in watched.compare(watched, models={"noisy": "plain"}).results}
    assert rows["damage with confidence"].worse_by == found[1].estimate


def test_a_lost_study_lets_nothing_pass(folder: Path, advrisk: Command, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "copied")
    (copied / "study.yaml").unlink()
    done = advrisk("gate", copied, "--require", "error_rows == 0")
    assert done.returncode == 2
    assert "study.yaml: the file is missing, so the study's requirements are unknown; put it back" in done.stderr


def test_a_time_that_nobody_saw_lets_nothing_pass(folder: Path) -> None:
    """A mean up to a limit that attacks did not reach is not known; up to where they ended, it is."""
    run = Run.open(folder)
    assert run.study is not None
    assert run.gate("survival.plain >= 0.001").results[-1].verdict == "pass"
    far = run.study.assess.model_copy(update={"survival": SurvivalSpec(until=10_000)})
    late = Run(run.folder, run.ledger, run.study.model_copy(update={"assess": far}))
    assert late.survival().asked_until == 10_000
    (last,) = late.gate("survival.plain >= 0.001").results[-1:]
    assert last.verdict == "undecided"
    assert "before the limit of 10000" in str(plain(last))


def test_the_gate_is_told_wherever_a_run_is(folder: Path) -> None:
    run = Run.open(folder)
    found = run.gate()
    record = run.record()
    assert record["gate"] == json.loads(json.dumps(found.as_dict()))
    heading = f"Gate of {run.name}: pass (2 pass)"
    assert heading in record["headlines"]
    assert "The study's gate passes (2 pass)." in record["executive"]["ship"]
    assert heading in found._repr_html_()
    frame = found.to_pandas()
    assert frame["requirement"].tolist() == [one.requirement for one in found.results]
    assert frame["high"].tolist() == [one.estimate.high for one in found.results if one.estimate]
    compared = run.compare(run, margin=0.3)
    rows = compared.to_arrow().to_pylist()
    assert [row["verdict"] for row in rows] == [one.word for one in compared.results]
    assert [(row["value"], row["low"]) for row in rows] == [
        (one.worse_by.value, one.worse_by.low) for one in compared.results
    ]
    assert compared.results[0].label in compared._repr_html_()


def test_the_evidence_index_names_requirements(folder: Path, tmp_path: Path) -> None:
    run = Run.open(folder)
    run.evidence(tmp_path / "pack")
    index = json.loads((tmp_path / "pack" / "index.json").read_text(encoding="utf-8"))
    (topic,) = [topic for topic in index["numbers"] if topic["id"] == "gate"]
    assert topic["where"] == "report.html#gate"
    assert [(one["what"], one["exact"]) for one in topic["numbers"]] == [
        (one.requirement, one.verdict) for one in run.gate().results
    ]
    assert {one["clause"] for one in topic["clauses"]} == {"Art. 9(8)"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--where", "class=1"], "it holds for all models, samples and attacks of the study, and this is a part"),
        (["--model", "plain"], "it holds for all models, samples and attacks of the study, and this is a part"),
        (["--arm", "fgsm*"], "it holds for all models, samples and attacks of the study, and this is a part"),
        (["--norm", "l2"], "the study asks about linf, and this about l2"),
        (["--detector", "confidence", "--false-alarms", "0.1"], "the study does not ask with this detector"),
    ],
)
def test_what_is_required_is_not_met_where_it_is_not_checked(
    folder: Path, advrisk: Command, options: list[str], why: str
) -> None:
    done = advrisk("select", folder, *options, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["requirements"], told["ship"]) == (4, "not checked", None)
    assert f"; what the study requires (gate) is not checked: {why}; " in told["headline"]
    record = json.loads(advrisk("report", folder, *options, "--json", "--out", "-").stdout)
    assert {name: record[name] for name in ("headline", "ship", "requirements", "decided")} == {
        name: told[name] for name in ("headline", "ship", "requirements", "decided")
    }


def test_the_norm_of_the_study_is_no_part(folder: Path) -> None:
    run = Run.open(folder)
    assert run.part(norm="linf").select().answer == run.select().answer
    assert run.select().requirements == "met"


def test_a_choice_that_leaves_nothing_out_is_no_part(folder: Path) -> None:
    run = Run.open(folder)
    assert run.part(models=["plain", "noisy"]).select().answer == run.select().answer
    assert run.part(arms=["*"]).select().requirements == "not checked", "corruptions count, too, where they are named"
    assert run.study is not None
    run.study = run.study.model_copy(update={"scenarios": {}})
    assert run.part(arms=["fgsm*", "pgd*"]).select().requirements == run.select().requirements == "met"
    assert run.part(arms=["*"]).select().requirements == "not checked"


def test_a_pass_on_risk_has_the_doubt_of_attacks_where_they_count(folder: Path) -> None:
    doubts = []
    attacks, noise = {"weight": 0.5, "arms": ["fgsm*"]}, {"weight": 0.5, "arms": ["gaussian*"]}
    for branch in (attacks, attacks | {"aggregate": "mean"}, noise, noise | {"aggregate": "max"}):
        scenario = {"day": {"branch": branch}}
        run = Run.open(folder)
        assert run.study is not None
        run.study = run.study.model_copy(update={"scenarios": scenario})
        (checked,) = (one for one in run.gate(["risk.plain <= 1"]).results if one.requirement.startswith("risk"))
        assert checked.verdict == "pass"
        doubts.append("these attacks did no more; a better one may" in checked.cautions)
    assert doubts == [True, True, False, False]


def test_why_requirements_could_not_be_checked_is_said_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gate(*_: object, **__: object) -> None:
        raise RiskError("the file of costs is lost.")

    monkeypatch.setattr(Gate, "assess", gate)
    found = Run.open(folder).select()
    assert (found.requirements, found.ship, found.exit_code) == ("not checked", None, 4)
    assert found.headline.endswith("; what the study requires (gate) is not checked: the file of costs is lost.")
