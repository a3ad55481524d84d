"""Scenarios of a real study: `advrisk show indicators RUN`, its files, and what Python says."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr
import yaml

from advrisk import Run, Study
from advrisk.assess.indicators.words import loss_text
from advrisk.core.errors import RiskError, StudyError
from advrisk.risk.indicators import risk
from advrisk.risk.losses import Answers

from .conftest import Command, study_of

NOISE = "gaussian-noise,sigma=0.3"
TOWN = {
    "grain": {"weight": 0.4, "of": {"gaussian-noise": 0.9}},
    "evil": {"weight": {"beta": [2, 98]}, "of": ["fgsm", "pgd"]},
}


@pytest.fixture(scope="module")
def finished(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a scenario and two losses, one of which came from a file that is gone."""
    folder = tmp_path_factory.mktemp("town")
    costs = [[0 if true == said else 1 + true for said in range(10)] for true in range(10)]
    lines = [["", *range(10)], *([true, *row] for true, row in enumerate(costs))]
    (folder / "costs.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
    content = study_of(nets) | {
        "losses": ["misclassified", {"name": "cost-matrix", "path": str(folder / "costs.csv"), "as": "bill"}],
        "scenarios": {"town": TOWN},
    }
    Study.from_dict(content).run(folder / "run")
    (folder / "costs.csv").unlink()
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


def mean_loss(run: Run, model: str, arm: str, loss: str = "(prediction <> label)::DOUBLE") -> float:
    sql = f"SELECT avg({loss}) AS v FROM outcomes JOIN samples USING (sample) WHERE model = $m AND arm = $a"
    return float(run.query(sql, {"m": model, "a": arm})["v"][0].as_py())


def test_the_risk_is_what_sql_says(run: Run) -> None:
    found = run.indicators()
    assert (found.scenarios, found.losses) == (("town",), ("misclassified", "bill"))
    for model in ("plain", "noisy"):
        worst = run.query(
            "SELECT avg(v) AS v FROM (SELECT sample, max((prediction <> label)::DOUBLE) AS v FROM outcomes "
            "JOIN samples USING (sample) WHERE kind = 'attack' AND model = $m GROUP BY sample)",
            {"m": model},
        )["v"][0].as_py()
        clean, noise = mean_loss(run, model, "clean"), mean_loss(run, model, NOISE)
        expected = 0.36 * noise + 0.02 * worst + 0.62 * clean
        assert found.of("town").of(model).risk.value == pytest.approx(expected, abs=1e-12)
        bill = found.of("town", "bill").of(model).tree.at("grain.gaussian-noise").value
        cost = "CASE WHEN prediction = label THEN 0 ELSE 1 + label END"
        assert bill.value == pytest.approx(mean_loss(run, model, NOISE, cost))


def test_the_terminal_the_files_and_python_say_the_same(run: Run, advrisk: Command, tmp_path: Path) -> None:
    found = run.indicators()
    shown = advrisk("show", "indicators", "run", env={"COLUMNS": "80"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    for result in found.results:
        assert f"Scenario town, loss {result.loss}" in shown.stdout
        for model in result.models:
            assert loss_text(model.risk.value, result.bounds) in shown.stdout
    assert "64 samples." in shown.stdout
    assert "lower bound" in shown.stdout
    said = advrisk("show", "indicators", "run", "--json", "--csv", "all.csv")
    assert json.loads(said.stdout) == json.loads(json.dumps(found.as_dict()))
    with (tmp_path / "all.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(found.rows())
    roots = [line for line in lines if line["kind"] == "branch" and line["path"] == ""]
    assert sorted(float(line["value"]) for line in roots) == sorted(
        model.risk.value for result in found.results for model in result.models
    )


def test_what_if(run: Run, advrisk: Command) -> None:
    found = run.indicators(what_if={"grain": 0.7}, losses=["misclassified"])
    before, after = found.results
    assert after.scenario.name == "town, what if grain = 0.7"
    noise, clean = (mean_loss(run, "plain", arm) for arm in (NOISE, "clean"))
    more = after.of("plain").risk.value - before.of("plain").risk.value
    assert more == pytest.approx(0.3 * 0.9 * (noise - clean))
    shown = advrisk(
        "show", "indicators", "run", "--what-if", "grain=0.7", "--loss", "misclassified", "--model", "plain"
    )
    assert loss_text(after.of("plain").risk.value, after.bounds) in shown.stdout
    assert "Risk by class: town" in shown.stdout, "a model that is named is shown in detail"


def test_what_if_with_several_scenarios_is_never_ignored(run: Run) -> None:
    two = {"town": TOWN, "calm": {"noise": 0.1}}
    found = run.indicators(scenarios=two, losses=["misclassified"], what_if={"grain": 0.7})
    assert found.scenarios == ("town", "town, what if grain = 0.7", "calm"), "calm has no such branch"
    for changes, complaint in (
        ({"grian": 0.7}, "town has no branch 'grian'"),
        ({"grain": 1.5}, "a weight is a share from 0 to 1, found 1.5"),
        ({"grain": 0.5, "noise": 0.5}, "has no branch"),
        ({"evil.pgd": 0.5}, "town.evil.pgd: has no weight of its own to change, as `of` is a list"),
    ):
        with pytest.raises(StudyError, match=re.escape(complaint)):
            run.indicators(scenarios=two, what_if=changes)


def test_losses_of_ones_own_that_go_wrong_are_named(run: Run) -> None:
    def nothing(answers: Answers) -> object:
        raise KeyError("x")

    for loss, complaint in (
        (lambda answers: np.full(len(answers), np.nan), "the loss <lambda> gave nan for"),
        (lambda answers: np.full(len(answers), np.inf), "the loss <lambda> gave inf; finite numbers are needed"),
        (nothing, "the loss nothing failed: KeyError: 'x'"),
    ):
        with pytest.raises(RiskError, match=complaint):
            run.indicators(losses=[loss])
    assert run.indicators(losses="misclassified").losses == ("misclassified",)


def test_arms_may_be_named_by_family_and_cause(run: Run) -> None:
    tree = {"a": {"weight": 0.5, "arms": ["gaussian-noise"]}, "b": {"weight": 0.5, "arms": ["noise"]}}
    found = run.indicators(scenarios={"s": tree}, losses=["misclassified"]).of("s").of("plain").tree
    assert found.at("a").arms == found.at("b").arms == (NOISE,)


def test_arms_that_were_left_out_are_not_said_to_be_missing(run: Run) -> None:
    with pytest.raises(RiskError, match=r"no arm fits .fgsm..*Only the arms that were named count here"):
        run.indicators(arms=["gaussian*"])


def test_other_scenarios_from_a_file_need_no_new_run(run: Run, advrisk: Command, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(yaml.safe_dump({"scenarios": {"calm": {"noise": 0.1}}}))
    said = json.loads(advrisk("show", "indicators", "run", "--scenarios", "other.yaml", "--json").stdout)
    assert {one["scenario"] for one in said["results"]} == {"calm"}
    value = run.indicators(scenarios={"calm": {"noise": 0.1}}).of("calm").of("plain").risk.value
    assert value == pytest.approx(0.1 * mean_loss(run, "plain", NOISE) + 0.9 * mean_loss(run, "plain", "clean"))


def test_a_new_loss_and_the_tensor_need_no_model(run: Run) -> None:
    tensor = run.tensor("plain", losses=[lambda answers: answers.confidence])
    assert tensor.data.shape == (1, 64, 6, 2)
    calm = {"calm": {"noise": 0.1}}
    assert (
        run.indicators(scenarios=calm, losses=["class-change"]).of("calm").of("plain").tree.at("clean").value.value == 0
    )
    scenario = run.indicators().of("town").scenario
    assert risk(run.tensor("plain"), scenario, loss="misclassified").value == pytest.approx(
        run.indicators().of("town").of("plain").risk.value
    )


@pytest.mark.parametrize("name", ["risk.nc", "risk.parquet"])
def test_the_tensor_goes_to_a_file(run: Run, advrisk: Command, tmp_path: Path, name: str) -> None:
    done = advrisk("export", "run", name, "--table", "risk", "--model", "plain")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"the risk tensor of plain (2 loss × 64 sample × 6 arm × 2 repeat) written to {name}" in done.stdout
    wanted = run.tensor("plain").data
    if name.endswith(".nc"):
        np.testing.assert_array_equal(xr.load_dataset(tmp_path / name, engine="scipy")["risk"].values, wanted.values)
    else:
        rows = pq.read_table(tmp_path / name).to_pylist()
        found = {tuple(row[dim] for dim in wanted.dims): row["value"] for row in rows}
        assert len(found) == len(rows) == int(wanted.notnull().sum())
        for place, value in found.items():
            assert value == wanted.sel(dict(zip(wanted.dims, place, strict=True))).item()
    refused = advrisk("export", "run", name, "--table", "risk")
    assert refused.returncode == 2
    assert "a risk tensor is of one model; add --model NAME: noisy, plain" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scenario", "twon"], "no scenario is called 'twon'; did you mean 'town'?"),
        (["--loss", "bil"], "no losses called 'bil'"),
        (["--model", "plane"], "no model called 'plane'"),
        (["--what-if", "grain"], "--what-if takes a branch and its weight, as in wet.rain=0.9; found 'grain'"),
        (["--what-if", "grain=0.1", "--what-if", "grain=0.2"], "--what-if gives grain two weights, 0.1 and 0.2"),
        (["--what-if", "grain=2"], "a weight is a share from 0 to 1, found 2"),
        (["--what-if", "grian=0.2"], "did you mean 'grain'?"),
        (["--scenarios", "no.yaml"], "no.yaml: there is no such file"),
        (["--norm", "l2"], "No such option: --norm"),
    ],
)
def test_mistakes(run: Run, advrisk: Command, words: list[str], message: str) -> None:
    done = advrisk("show", "indicators", "run", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_arms_that_were_not_run_are_named_with_what_to_do(run: Run) -> None:
    with pytest.raises(RiskError, match=r"calm\.pixel: no arm fits 'pixel'.*Nothing of this was run; add them to"):
        run.indicators(scenarios={"calm": {"pixel": 0.1}})


def test_a_study_whose_scenario_is_wrong_runs_nothing(
    nets: Path, advrisk: Command, write_study: Callable[..., Path], tmp_path: Path
) -> None:
    study = study_of(nets) | {"scenarios": {"town": {"grain": {"weight": 0.4, "of": {"gaussian-nose": 0.9}}}}}
    for words in ([], ["--dry-run"]):
        done = advrisk("run", write_study(study), "--out", "run", *words)
        assert done.returncode == 2
        assert "scenarios.town.grain.of.gaussian-nose: no arm fits 'gaussian-nose' (did you mean" in done.stderr
        assert not (tmp_path / "run").exists()


def test_a_finished_run_says_where_to_see_its_scenarios(
    nets: Path, advrisk: Command, write_study: Callable[..., Path], tmp_path: Path
) -> None:
    study = study_of(nets) | {
        "arms": [{"corruption": "gaussian-noise", "sigma": 0.3}],
        "scenarios": {"t": {"noise": 1}},
    }
    done = advrisk("run", write_study(study), "--out", "run", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "scenarios: advrisk show indicators run" in done.stdout
    assert "In the scenario t, " in done.stdout
    shown, lead = advrisk("show", "damage", "run"), advrisk("select", "run").stdout
    needs = "· Damage needs attacks with a norm; the study's own question is answered above.\n"
    assert (shown.returncode, shown.stdout) == (0, lead + needs), shown.stderr
    assert advrisk("show", "run").stdout.startswith(lead), "the summary has the same tables"
    told = json.loads(advrisk("show", "damage", "run", "--json").stdout)
    assert (told["by"], told["headline"]) == ("t", Run.open(tmp_path / "run").select().headline)
    refused = advrisk("show", "damage", "run", "--csv", "rows.csv")
    assert (refused.returncode, "no attack with a norm" in refused.stderr) == (2, True), "there are no rows of damage"


def test_without_a_scenario_corruptions_count_alike_and_it_says_so(run: Run) -> None:
    assert run.study is not None
    found = run.indicators(scenarios={}, losses=["misclassified"])
    assert found.of("uniform").of("plain").risk.value == pytest.approx(mean_loss(run, "plain", NOISE))
    assert any("describes no deployment" in note for note in found.notes)
    with pytest.raises(StudyError, match="there is none; state one"):
        run.indicators(scenarios={}, what_if={"grain": 1})


def test_a_class_change_that_attacks_did_not_ask_about_is_refused_with_the_remedy(run: Run, advrisk: Command) -> None:
    assert run.query("SELECT 1 FROM outcomes WHERE outcome = 'already_wrong' LIMIT 1").num_rows
    said = advrisk("show", "indicators", "run", "--loss", "class-change")
    assert said.returncode == 2
    assert "`success: prediction`" in " ".join(said.stderr.split())
    both = run.indicators(scenarios={"calm": {"noise": 0.1}, "town": TOWN}, losses=["class-change"])
    assert both.scenarios == ("calm",)
    assert any(note.startswith("The scenario town is left out: the loss class-change compares") for note in both.notes)


def test_the_labels_of_an_exported_tensor_work(run: Run, advrisk: Command, tmp_path: Path) -> None:
    assert advrisk("export", "run", "risk.nc", "--table", "risk", "--model", "plain").returncode == 0
    with xr.open_dataset(tmp_path / "risk.nc", engine="scipy") as file:
        found = file["risk"].sel(loss="misclassified", arm=NOISE).mean(("sample", "repeat"))
        assert float(found) == pytest.approx(mean_loss(run, "plain", NOISE))
        assert set(file["kind"].values.tolist()) == {"clean", "corruption", "attack"}
