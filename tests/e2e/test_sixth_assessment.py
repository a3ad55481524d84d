"""A question that another package brings, in one file and by an entry point: it appears wherever the others do."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk.ledger import Ledger

from .conftest import study_of

FILE = Path(__file__).parents[1] / "outside" / "flip_rate.py"
Results = dict[str, dict[str, Any]]  # name of a command -> its exit code, what it printed, and its complaint

# Commands one after the other in one process, where the package is installed: each by itself would import all again.
PROGRAM = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from tempfile import TemporaryFile
from advrisk.cli import main

def call(words):
    sys.argv = ["advrisk", *words]
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main()
            except SystemExit as ended:
                code = ended.code
        out.seek(0), err.seek(0)
        return {"code": code, "out": out.read(), "err": err.read()}

print(json.dumps({name: call(words) for name, words in json.load(sys.stdin).items()}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process where this package is installed as pip would lay it out."""
    site = tmp_path_factory.mktemp("site")
    shutil.copy(FILE, site)
    info = site / "flip_rate-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flip-rate\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[advrisk.assessments]\nflip-rate = flip_rate:FlipRate\n")
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": paths, "COLUMNS": "120"}


def python(program: str, environment: dict[str, str], given: str = "") -> str:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def content(nets: Path) -> dict[str, Any]:
    study = study_of(nets)
    study["data"] |= {"evaluate": 24, "calibrate": 10}
    study["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.3]}]
    study["assess"] |= {"flip-rate": {"largest": 0.2}, "certificate": {"alpha": 0.5, "zeta": 0.4}}
    study["gate"] = ["flips.plain <= 100 %", "flips.* >= 99.9 %"]
    return study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sixth")


@pytest.fixture(scope="module")
def done(installed: dict[str, str], content: dict[str, Any], folder: Path) -> Results:
    """What every command did."""
    mistakes = {"misspelt": {"largst": 0.2}, "negative": {"largest": -1}, "impossible": {"largest": 0}}
    studies = {name: {"flip-rate": options} for name, options in mistakes.items()} | {"unknown": {"flip-rates": {}}}
    for name, asked in ({"study": {}} | studies).items():
        study = content | {"assess": content["assess"] | asked if name != "unknown" else asked}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(study))
    run = str(folder / "run")
    commands = {
        "run": ["run", str(folder / "study.yaml"), "--out", run, "--workers", "1"],
        "list": ["list", "assessments", "flip-rate"],
        "show": ["show", "flip-rate", run],
        "more": ["show", "flip-rate", run, "--detail", "--largest", "0.3"],
        "shown as json": ["show", "flip-rate", run, "--json"],
        "help": ["show", "flip-rate", "--help"],
        "none": ["show", "flip-rate", run, "--largest", "0.01"],
        "summary": ["show", run],
        **{
            form: ["report", run, *([f"--{form}"] if form != "html" else []), "--out", str(folder / f"out.{ending}")]
            for form, ending in (("html", "html"), ("markdown", "md"), ("json", "json"), ("csv", "csv"))
        },
        "gate": ["gate", run, "--json"],
        "no gate": ["gate", run, "--require", "flipps.plain <= 1"],
        "evidence": ["evidence", run, "--out", str(folder / "pack")],
        "verify": ["verify", str(folder / "pack"), "--run", run],
        **{name: ["run", str(folder / f"{name}.yaml"), "--out", str(folder / "other")] for name in studies},
    }
    results: Results = json.loads(python(PROGRAM, installed, json.dumps(commands)).splitlines()[-1])
    assert results["run"]["code"] == 0, results["run"]["err"]
    return results


@pytest.fixture(scope="module")
def rates(done: Results, folder: Path) -> dict[str, float]:
    """The shares counted by hand, from the rows alone."""
    ledger = Ledger.open(folder / "run")
    splits = {row["sample"]: row["split"] for row in ledger.query("FROM samples").to_pylist()}
    rows = [row for row in ledger.outcomes().to_pylist() if row["eps"] == 0.1]
    assert any(splits[row["sample"]] == "calibrate" for row in rows), "these must not count"
    rows = [row for row in rows if splits[row["sample"]] == "evaluate"]
    return {
        model: sum(row["prediction"] != row["clean_prediction"] for row in rows if row["model"] == model) / 24
        for model in ("plain", "noisy")
    }


def test_the_file_is_short() -> None:
    assert len(FILE.read_text().splitlines()) < 120


def test_its_options_and_quantities_are_listed(done: Results) -> None:
    shown = " ".join(done["list"]["out"].split())
    assert "How often arms change a model's prediction" in shown
    assert "largest: float = 1.0" in shown
    assert "can be required: flips, share of samples whose prediction some perturbation changes" in shown


def test_show_prints_it_and_takes_its_options(done: Results, rates: dict[str, float]) -> None:
    assert done["show"]["code"] == 0, done["show"]["err"]
    assert "changes its answer most often" in done["show"]["out"]
    assert f"{100 * rates['plain']:.1f} %" in done["show"]["out"]
    assert "samples were perturbed" not in done["show"]["out"]
    assert "plain: 24 samples were perturbed." in done["more"]["out"]
    assert json.loads(done["shown as json"]["out"])["quantities"]["flips.noisy"]["value"] == pytest.approx(
        rates["noisy"]
    )
    assert "--largest" in done["help"]["out"]
    assert "Count perturbations up to this eps only." in done["help"]["out"]
    assert "advrisk show flip-rate" in done["summary"]["out"]
    assert "flip-rate: advrisk show flip-rate" in done["run"]["out"]


def test_python_gives_the_same(done: Results, installed: dict[str, str], folder: Path, rates: dict[str, float]) -> None:
    program = f"""
import advrisk
run = advrisk.Run.open({str(folder / "run")!r})
found = run.assess("flip-rate")
plain = next(one.estimate for one in found.quantities if one.model == "plain")
print(plain.value, found.result.detail, "<table" in found._repr_html_())
few = next(one.estimate for one in run.assess("flip-rate", largest=0.3).quantities if one.model == "plain")
print(few.n, found.to_arrow().num_rows)
"""
    value, detail, html, n, n_rows = python(program, installed).split()
    assert float(value) == pytest.approx(rates["plain"])
    assert (detail, html, n, n_rows) == ("False", "True", "24", "2")


def test_it_is_in_the_report_in_every_form(done: Results, folder: Path, rates: dict[str, float]) -> None:
    assert not any(done[form]["code"] for form in ("html", "markdown", "json", "csv"))
    page = (folder / "out.html").read_text()
    assert '<section id="flip-rate">' in page
    assert "How often answers flip" in page
    assert "What else was asked" in page
    text = (folder / "out.md").read_text()
    assert "### How often answers flip" in text
    assert f"{100 * rates['plain']:.1f} %" in text
    record = json.loads((folder / "out.json").read_text())
    assert record["further"]["flip-rate"]["tables"]["flip_rate_of_every_model"][1]["model"] == "plain"
    assert any("changes its answer most often" in line for line in record["headlines"])
    flips = [row for row in record["numbers"] if row["quantity"] == "flips"]
    assert {row["model"]: row["value"] for row in flips} == pytest.approx(rates)
    with (folder / "out.csv" / "flip-rate.csv").open() as file:
        assert {row["model"]: float(row["flip_rate"]) for row in csv.DictReader(file)} == pytest.approx(rates)


def test_the_gate_decides_by_it(done: Results) -> None:
    results = {one["requirement"]: one["verdict"] for one in json.loads(done["gate"]["out"])["results"]}
    assert results["flips.plain <= 100 %"] == "pass"
    assert results["flips.noisy >= 99.9 %"] == "fail"
    assert done["no gate"]["code"] == 2
    assert "did you mean 'flips'?" in done["no gate"]["err"]


def test_evidence_holds_its_numbers(done: Results, folder: Path, rates: dict[str, float]) -> None:
    assert done["evidence"]["code"] == 0, done["evidence"]["err"]
    index = json.loads((folder / "pack" / "index.json").read_text())
    (topic,) = [one for one in index["numbers"] if one["id"] == "flip-rate"]
    assert {one["model"]: one["estimate"]["value"] for one in topic["numbers"]} == pytest.approx(rates)
    assert done["verify"]["code"] == 0, done["verify"]["err"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misspelt", "assess.flip-rate.largst: unknown key; did you mean 'largest'?"),
        ("negative", "assess.flip-rate.largest: "),
        ("impossible", "found `largest: 0` and no corruption"),
        ("unknown", "assess.flip-rates: unknown key; did you mean 'flip-rate'?"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(done: Results, folder: Path, name: str, message: str) -> None:
    assert done[name]["code"] == 2
    assert message in done[name]["err"]
    assert not (folder / "other").exists()


def test_what_has_no_answer_says_why(done: Results, folder: Path, installed: dict[str, str]) -> None:
    why = "no perturbation had an eps up to 0.01; raise `largest`"
    assert done["none"]["code"] == 2
    assert why in done["none"]["err"]
    shutil.copytree(folder / "run", folder / "none")
    path = folder / "none" / "study.yaml"
    path.write_text(path.read_text().replace("largest: 0.2", "largest: 0.01"))
    program = f"""
import advrisk
run = advrisk.Run.open({str(folder / "none")!r})
print(run.record()["unanswered"]["flip-rate"])
print("No answer: no perturbation had an eps up to 0.01" in run.report().read_text())
"""
    assert python(program, installed).splitlines() == [why, "True"]
