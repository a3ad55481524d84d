"""Defended models from a study to its numbers: the same rows however they are carried out, refusals beside accuracy."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from advrisk import Run, Study
from advrisk.assess.status_sections import status_sections
from advrisk.cli.damage import print_damage
from advrisk.core.errors import StudyError
from advrisk.render.terminal import print_sections
from advrisk.run.executors import choice
from advrisk.testing.ledgers import outcome_rows, output_rows


@pytest.fixture(scope="module")
def defended(nets: Path) -> dict[str, Any]:
    net = {
        "source": "torch",
        "factory": "advrisk.parts.models.small:SmallCnn",
        "args": {"size": 8, "width": 8},
        "weights": str(nets / "plain.safetensors"),
    }
    return {
        "name": "defended",
        "seed": 5,
        "data": {"source": "digits", "evaluate": 24},
        "models": {"plain": {**net, "tags": {"depth": 3}, "surrogate": True}},
        "defences": {
            "sure": {"of": "plain", "name": "conf", "threshold": 0.9},
            "noisy": {"of": ["plain", "sure"], "name": "gauss-out", "sigma": 0.3},
        },
        "arms": [
            {"attack": "pgd", "norm": "linf", "eps": 0.15, "steps": 6, "draws": 3},
            {"attack": "square", "norm": "linf", "eps": 0.15, "max_queries": 30},
        ],
        "shard": 16,
    }


@pytest.fixture(scope="module")
def run(defended: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Carried out in this process, in shards of 16."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "worker_count", lambda *_: 0)
        return Study.from_dict(defended).run(tmp_path_factory.mktemp("run") / "one")


def test_rows_do_not_depend_on_workers_and_shards(run: Run, defended: dict[str, Any], tmp_path: Path) -> None:
    Study.from_dict(defended | {"shard": 7}).run(tmp_path / "cut", workers=2)
    for rows in (outcome_rows, output_rows):
        here, there = (
            [{name: value for name, value in row.items() if name != "cell"} for row in rows(folder)]
            for folder in (run.folder, tmp_path / "cut")
        )
        assert sorted(here, key=str) == sorted(there, key=str)


def test_the_ledger_knows_them_as_models(run: Run) -> None:
    rows = {row["model"]: row for row in run.query("SELECT * FROM models").to_pylist()}
    assert set(rows) == {"plain", "sure", "noisy-plain", "noisy-sure"}
    assert len({row["digest"] for row in rows.values()}) == 4
    assert json.loads(rows["noisy-sure"]["tags"]) == {
        "depth": 3, "defence": "conf+gauss-out", "threshold": 0.9, "sigma": 0.3, "noise_on": "probabilities",
        "size": 8, "width": 8,
    }  # fmt: skip
    assert [rows[name]["random"] for name in ("plain", "sure", "noisy-plain")] == [False, False, True]
    assert {row["train_samples"] for row in rows.values()} == {rows["plain"]["train_samples"]}
    assert rows["plain"]["train_s"] is not None
    assert "plain" not in run.damage().estimates, "a surrogate is inside of others and not assessed itself"


def test_what_is_refused_says_no_class_and_is_counted(run: Run) -> None:
    rows = run.query("SELECT * FROM outcomes WHERE model = 'sure'").to_pylist()
    refused = [row for row in rows if row["outcome"] == "rejected"]
    assert {row["kind"] for row in refused} == {"clean", "attack"}
    assert all(row["prediction"] is None and row["confidence"] < 0.9 for row in refused)
    assert all(row["confidence"] >= 0.9 for row in rows if row["outcome"] in ("success", "resisted"))
    assert all(row["n_rejected"] <= row["n_forward"] for row in rows)
    assert any(row["n_rejected"] for row in rows if row["outcome"] == "success")
    clean = {row["sample"] for row in refused if row["kind"] == "clean"}
    assert all(row["outcome"] != "already_wrong" for row in rows if row["sample"] in clean)
    others = run.query("SELECT DISTINCT outcome FROM outcomes WHERE model = 'noisy-plain'")["outcome"].to_pylist()
    assert "rejected" not in others


def test_refusals_stand_beside_the_accuracy(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    row = next(row for row in run.damage().models if row.model == "sure")
    clean = run.query("SELECT outcome FROM outcomes WHERE model = 'sure' AND kind = 'clean'")["outcome"].to_pylist()
    assert row.clean_rejection is not None
    assert row.clean_rejection.value == clean.count("rejected") / 24
    assert row.clean_accuracy is not None
    assert row.clean_accuracy.value == clean.count("resisted") / 24
    assert run.status().clean_rejection["sure"] == row.clean_rejection.value
    print_damage(run.damage())
    print_sections(status_sections(run.status()))
    assert capsys.readouterr().out.count("refused") > 1
    assert "clean inputs refused" in run.report().read_text(encoding="utf-8")


def test_many_draws_are_counted(run: Run) -> None:
    rows = run.query(
        "SELECT model, n_forward, n_judge, outcome FROM outcomes WHERE family = 'pgd' AND outcome = 'resisted'"
    ).to_pylist()
    drawn = [row for row in rows if row["model"] == "noisy-plain"]
    assert drawn
    assert all(row["n_judge"] == 11 for row in drawn)
    assert max(row["n_forward"] for row in drawn) >= 21, "7 points, three draws each"
    assert all(row["n_forward"] <= 7 for row in rows if row["model"] == "sure")


def test_a_module_handed_over_can_be_defended(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    study = {
        "name": "object",
        "data": {"source": "digits", "evaluate": 6},
        "models": {"mine": {"source": "object"}},
        "defences": {"soft": {"of": "mine", "name": "median-smoothing"}},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    }
    found = Study.from_dict(study).run(tmp_path / "run", modules={"mine": module})
    assert found.query("SELECT count(*) AS n FROM outcomes")["n"].to_pylist() == [24]
    study["defences"] = {"sharp": {"of": "mine", "name": "jpeg", "quality": 101}}
    with pytest.raises(StudyError, match=r"<study>: defences.sharp: jpeg.quality: must be at most 100"):
        Study.from_dict(study).run(tmp_path / "other", modules={"mine": module})
