"""The command line as a user meets it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from advrisk import Study
from advrisk.cli.app import app
from advrisk.ledger import Ledger
from docs.generate_commands import commands_page

Advrisk = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).parents[2]


def verbs() -> list[tuple[str, Any]]:
    """Every command, the nested ones too."""
    found = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        nested = getattr(command, "commands", None)
        found += [(f"{name} {inner}", child) for inner, child in nested.items()] if nested else [(name, command)]
    return found


@pytest.mark.parametrize(("name", "command"), verbs())
def test_every_verb_has_an_example_and_is_documented(name: str, command: Any) -> None:
    assert f"Example: advrisk {name}" in " ".join(command.help.split())
    assert f"advrisk {name}" in (ROOT / "docs" / "commands.md").read_text()


def test_the_page_of_commands_is_what_the_program_says() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert commands_page() == page, "run: python docs/generate_commands.py"


@pytest.mark.parametrize("words", [["-c", "import advrisk"], ["-m", "advrisk", "--help"]])
def test_nothing_heavy_is_imported_to_start(words: list[str]) -> None:
    traced = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, check=True)
    imported = {line.split("|")[-1].strip() for line in traced.stderr.splitlines()}
    assert not imported & {"torch", "numpy", "scipy", "sklearn", "duckdb", "pyarrow", "pydantic", "plotly", "jinja2"}


def test_the_starter_study_runs_as_it_is(advrisk: Advrisk, tmp_path: Path) -> None:
    assert advrisk("init").returncode == 0
    again = advrisk("init")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    text = (tmp_path / "study.yaml").read_text().replace("evaluate: 200", "evaluate: 32")
    (tmp_path / "study.yaml").write_text(text)
    planned = json.loads(advrisk("run", "study.yaml", "--dry-run", "--json").stdout)
    # 1 shard x 2 models x (clean + minimum-norm + 2 pgd + 2 repeats of noise)
    assert (planned["n_cells"], planned["n_rows"]) == (12, 32 * 12)
    # per sample and model: the judge's passes (1 clean, 2 per attack, 1 per draw; pgd's success is walked back: 6 on
    # the line, 4 forward and 1 backward at each of 2 turns), minimum-norm 54, pgd 21; backward: minimum-norm 4
    # classes, 5 steps that only l2 and l1 take, 22 steps and 10 more where those fail, pgd 20
    assert planned["n_forward"] == 32 * 2 * (1 + (54 + 2) + 2 * (21 + 2 + 6 + 2 * 4) + 2)
    assert planned["n_backward"] == 32 * 2 * (4 + 5 + 22 + 10 + 2 * (20 + 2))
    assert not (tmp_path / "runs").exists(), "a dry run must write nothing"
    done = advrisk("run", "study.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert {row["model"] for row in json.loads(done.stdout)["models"]} == {"plain", "hardened"}
    assert (tmp_path / "runs" / "my-study" / "report.html").is_file()


def test_mistakes_end_with_2_and_no_traceback(advrisk: Advrisk, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\narms: [{attack: pdg, norm: linf, eps: 0.1}]\n")
    for words in (
        ["run", "nowhere.yaml"],
        ["run", "bad.yaml"],
        ["status", "nowhere"],
        ["report", "nowhere"],
        ["show", "nowhere"],
        ["list", "atacks"],
        ["train", "nowhere.yaml"],
        ["import", "nowhere.csv", "run"],
        ["export", "nowhere", "x.csv"],
        ["ledger", "sql", "nowhere", "SELECT 1"],
        ["no-such-verb"],
    ):
        done = advrisk(*words)
        assert done.returncode == 2, words
        assert "Traceback" not in done.stderr, words
        assert done.stderr.strip(), words


def test_an_unknown_attack_is_refused_with_its_place_and_the_nearest_name(
    advrisk: Advrisk, study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path
) -> None:
    study["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": 0.1}, {"attack": "pdg", "norm": "linf", "eps": 0.1}]
    file = write_study(study)
    line = next(n for n, text in enumerate(file.read_text().splitlines(), start=1) if "pdg" in text)
    done = advrisk("run", file, "--out", "run")
    assert f"study.yaml:{line}: arms[1]: no attacks called 'pdg'; did you mean 'pgd'?" in done.stderr
    assert not (tmp_path / "run" / "ledger" / "segments").exists() or not list(
        (tmp_path / "run" / "ledger" / "segments").iterdir()
    )


def test_list_shows_every_kind(advrisk: Advrisk) -> None:
    described = json.loads(advrisk("list", "--json").stdout)
    assert {"attacks", "corruptions", "data", "defences", "detectors", "models"} <= described.keys()
    pgd = next(part for part in described["attacks"] if part["name"] == "pgd")
    assert {parameter["name"]: parameter["default"] for parameter in pgd["parameters"]} == {
        "steps": 40,
        "step_size": None,
        "restarts": 1,
        "random_start": True,
    }
    text = advrisk("list", "detectors").stdout
    assert "feature-squeezing" in text
    assert "needs scores" in text
    assert "may refuse to answer" in advrisk("list", "defences").stdout


def test_detectors_of_a_study_score_what_the_workers_kept(
    advrisk: Advrisk, study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path
) -> None:
    study["arms"] = study["arms"][:1]
    Study.from_dict(study).run(tmp_path / "run", workers=2)
    study["detectors"] = ["confidence", {"name": "feature-squeezing", "bits": [1, 4]}]
    done = advrisk("run", write_study(study), "--out", "run")
    assert done.returncode == 0, done.stderr
    ledger = Ledger.open(tmp_path / "run")
    kept = ledger.query("SELECT 1 FROM outcomes WHERE kind = 'clean' OR outcome = 'success'").num_rows
    counts = ledger.query("SELECT detector, count(*) AS n FROM scores GROUP BY ALL ORDER BY ALL").to_pylist()
    assert [row["detector"].partition("@")[0] for row in counts] == [
        "confidence",
        "feature-squeezing,bits=1",
        "feature-squeezing,bits=4",
    ]
    assert {row["n"] for row in counts} == {kept}
    study["keep_inputs"] = "none"  # then what is to be scored is crafted again, from the same seeds
    assert advrisk("run", write_study(study), "--out", "other").returncode == 0
    assert not (tmp_path / "other" / "inputs").exists()
    by_name = "SELECT model, sample, arm, detector, score FROM scores JOIN outcomes USING (cell, sample) ORDER BY ALL"
    assert Ledger.open(tmp_path / "other").query(by_name) == ledger.query(by_name)


def test_the_schema_knows_the_registered_parts(advrisk: Advrisk) -> None:
    schema = json.loads(advrisk("schema").stdout)
    assert set(schema["properties"]) >= {"name", "seed", "data", "models", "arms", "success", "assess"}
    assert "pgd" in json.dumps(schema["$defs"]["ArmEntry"]["properties"]["attack"])
    assert "feature-squeezing" in json.dumps(schema["properties"]["detectors"])
    recipe = json.loads(advrisk("schema", "recipe").stdout)
    assert "trades" in json.dumps(recipe["$defs"]["TrainedModel"]["properties"]["method"])


def test_train_skips_what_is_there(advrisk: Advrisk, tmp_path: Path) -> None:
    model = {"factory": "advrisk.parts.models.small:SmallCnn", "args": {"size": 8}, "method": "plain", "epochs": 1}
    recipe = {"name": "one", "seed": 1, "data": {"source": "digits"}, "models": {"net": model}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    assert "trained in" in advrisk("train", "recipe.yaml").stdout
    first = (tmp_path / "models" / "net.safetensors").read_bytes()
    assert "there already" in advrisk("train", "recipe.yaml").stdout
    assert (tmp_path / "models" / "net.safetensors").read_bytes() == first


def test_import_show_export(advrisk: Advrisk, tmp_path: Path) -> None:
    # Two models on four samples; by hand: Psi_avg counts strictly greater distances among all eight.
    # a: 0.1 0.2 0.3 inf, b: 0 0.4 0.5 inf  ->  a: (6 + 5 + 4) / 32, b: (7 + 3 + 2) / 32
    rows = ["model,sample,distance", "a,1,0.1", "a,2,0.2", "a,3,0.3", "a,4,", "b,1,0", "b,2,0.4", "b,3,0.5", "b,4,inf"]
    (tmp_path / "theirs.csv").write_text("\n".join(rows) + "\n")
    done = advrisk("import", "theirs.csv", "run", "--norm", "linf")
    assert done.returncode == 0, done.stderr
    shown = json.loads(advrisk("show", "damage", "run", "--json").stdout)
    values = {row["model"]: row["relative_damage"]["value"] for row in shown["models"]}
    assert values == {"a": 15 / 32, "b": 12 / 32}
    twice = advrisk("import", "theirs.csv", "run", "--norm", "linf")
    assert (twice.returncode, "already holds" in twice.stderr) == (2, True)
    assert advrisk("export", "run", "out.csv").returncode == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 9
    nothing = advrisk("export", "run", "out.npz")
    assert (nothing.returncode, "keep_inputs" in nothing.stderr) == (2, True)
    for bad, complaint in (
        ("model,sample\na,1\n", "distances is missing"),
        ("model,sample,distance\na,1,-2\n", "at least 0"),
        ("model,sample,distance\na,1,nan\n", "at least 0"),
        ("model,sample,distance\na,1,0.5\na,1,0.5\n", "twice"),
        ("model,sample,distanse\na,1,0.5\n", "did you mean 'distance'"),
        ("model,sample,distance\n", "no row"),
    ):
        (tmp_path / "bad.csv").write_text(bad)
        refused = advrisk("import", "bad.csv", "other", "--norm", "linf")
        assert (refused.returncode, complaint in refused.stderr) == (2, True), refused.stderr
        assert not list((tmp_path / "other").rglob("*.parquet"))


def test_kept_inputs_are_exported_and_deleted(
    advrisk: Advrisk, study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path
) -> None:
    import numpy as np

    study["data"]["evaluate"] = 32
    assert advrisk("run", write_study(study), "--out", "run").returncode == 0
    done = advrisk("export", "run", "adversarial.npz", "--model", "plain", "--arm", "fgsm-linf-0.2-ace")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "adversarial.npz") as kept:
        assert len(kept["x"]) > 0
        assert np.abs(kept["x_adv"] - kept["x"]).max() <= 0.2 + 1e-6
        assert (kept["prediction"] != kept["label"]).all()
        sample = str(kept["sample"][0])
    assert "0 files" not in advrisk("ledger", "delete-inputs", "run", "--sample", sample).stdout
    advrisk("export", "run", "adversarial.npz", "--model", "plain")
    with np.load(tmp_path / "adversarial.npz") as kept:
        assert sample not in kept["sample"].tolist()
    advrisk("ledger", "delete-inputs", "run", "--model", "plain")
    assert advrisk("export", "run", "adversarial.npz", "--model", "plain").returncode == 2
    assert advrisk("report", "run").returncode == 0, "a report must not need the deleted inputs"


def test_a_narrow_terminal_shows_whole_numbers(
    advrisk: Advrisk, study: dict[str, Any], write_study: Callable[..., Path]
) -> None:
    study["data"]["evaluate"] = 32
    study["keep_inputs"] = "none"
    assert advrisk("run", write_study(study), "--out", "run").returncode == 0
    narrow, summary = (advrisk("show", *words, "run", env={"COLUMNS": "60"}).stdout for words in (["damage"], []))
    damage = json.loads(advrisk("show", "damage", "run", "--json").stdout)["models"][0]["relative_damage"]
    for text in (narrow, summary):
        whole = f"relative damage: {damage['value']:.3f} [{damage['low']:.3f}, {damage['high']:.3f}]"
        assert whole in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= 60
    attacks = advrisk("show", "attacks", "run", env={"COLUMNS": "60"}).stdout
    best = json.loads(advrisk("show", "attacks", "run", "--arm", "*-linf-*", "--json").stdout)["overall"][0]
    assert max(map(len, attacks.splitlines())) <= 60
    assert best["name"] in attacks
    assert advrisk("show", "attacks", "run", "--arm", "nobody").returncode == 2


@pytest.mark.parametrize("words", [["list", "attacks"], ["schema"], ["list", "--json"], ["--help"]])
def test_a_reader_that_has_gone_ends_it_without_a_word(words: list[str]) -> None:
    """By rich, by print, and by typer; 1 would mean that a gate failed."""
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "advrisk", *words]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("words", [["list", "attacks"], ["schema"], ["--help"]])
def test_a_full_disk_below_standard_output_is_a_mistake_and_no_verdict(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "advrisk", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    needed = "advrisk: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, needed)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", ">/dev/full 2>&-"])
def test_streams_that_the_caller_closed_are_no_verdict(closed: str, tmp_path: Path) -> None:
    """Python has no stream there then, and 1 would mean that a gate failed."""
    codes = []
    for words in ("list attacks", f"gate {tmp_path}"):
        command = f"{sys.executable} -m advrisk {words} {closed}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=100, check=False)
        assert "Traceback" not in done.stderr
        codes.append(done.returncode)
    assert codes == [2 if "full" in closed else 0, 2]


def test_an_error_of_advrisk_itself_has_a_code_that_is_no_verdict(
    advrisk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: str) -> None:
        raise ZeroDivisionError(folder)

    monkeypatch.setattr("advrisk.api.Run.open", fail)
    for words in (["gate", "run"], ["select", "run", "--json"], ["status", "run"]):
        done = advrisk(*words)
        assert (done.returncode, done.stdout) == (70, "")
        assert "ZeroDivisionError: run" in done.stderr
        assert done.stderr.endswith("advrisk: an error of advrisk itself; please report it with the lines above\n")


def test_pipes_and_devices_are_refused_as_files(advrisk: Callable[..., Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for words in (["run", "pipe.yaml"], ["train", "pipe.yaml"], ["verify", "pipe.yaml"], ["run", "/dev/zero"]):
        done = advrisk(*words)
        assert (done.returncode, "is a pipe or a device, not a file" in done.stderr) == (2, True), done.stderr
