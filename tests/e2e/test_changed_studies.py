"""A study changes between runs of one folder: what is shown is what the present one asks for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk import Study
from advrisk.core.errors import ModelError, RunError, StudyError
from advrisk.testing.ledgers import outcome_rows

Study_ = dict[str, Any]


def same_as_fresh(study: Study_, folder: Path, fresh: Path) -> None:
    """The folder shows exactly what a run of this study in a new folder shows."""
    run, new = Study.from_dict(study).run(folder), Study.from_dict(study).run(fresh)
    assert outcome_rows(folder) == outcome_rows(fresh)
    assert run.status().complete
    assert replace(run.status(), flags={}) == replace(new.status(), flags={})  # cells of other shards, other shares
    assert run.damage().as_dict() == new.damage().as_dict()


def test_fewer_repeats_arms_models_and_samples(study: Study_, tmp_path: Path) -> None:
    study["arms"].append({"attack": "pgd", "norm": "l1", "eps": 2, "repeats": 3, "steps": 5})
    Study.from_dict(study).run(tmp_path / "run")
    study["arms"][-1]["repeats"] = 1
    del study["arms"][0]
    del study["models"]["noisy"]
    study["models"]["other"] = study["models"]["plain"]
    study["data"]["evaluate"] = 48  # three whole shards
    same_as_fresh(study, tmp_path / "run", tmp_path / "fresh")


def test_other_data_in_the_same_folder_replace_the_old(study: Study_, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    study["arms"] = study["arms"][:1]
    study["models"] = {name: model | {"expect_accuracy": 0} for name, model in study["models"].items()}  # noise as data
    for name in ("one", "two"):
        x = rng.integers(0, 256, (32, 8, 8), dtype=np.uint8)
        np.savez(tmp_path / f"{name}.npz", x=x, y=np.arange(32) % 10)
    study["data"] = {"source": "npz", "path": str(tmp_path / "one.npz"), "evaluate": 32}
    Study.from_dict(study).run(tmp_path / "run")
    study["data"]["path"] = str(tmp_path / "two.npz")
    same_as_fresh(study, tmp_path / "run", tmp_path / "fresh")


def test_weights_that_change_and_change_back(study: Study_, tmp_path: Path) -> None:
    study["arms"] = study["arms"][:1]
    first = study["models"]["plain"]
    Study.from_dict(study).run(tmp_path / "run")
    rows = outcome_rows(tmp_path / "run")
    study["models"]["plain"] = study["models"]["noisy"]
    Study.from_dict(study).run(tmp_path / "run")
    assert outcome_rows(tmp_path / "run") != rows
    study["models"]["plain"] = first
    Study.from_dict(study).run(tmp_path / "run")
    assert outcome_rows(tmp_path / "run") == rows


def test_a_folder_belongs_to_one_study(study: Study_, tmp_path: Path) -> None:
    study["arms"] = study["arms"][:1]
    Study.from_dict(study).run(tmp_path / "run")
    study["name"] = "another"
    with pytest.raises(RunError, match="holds the study 'digits-study', and this is 'another'"):
        Study.from_dict(study).run(tmp_path / "run")


def test_a_refused_study_leaves_nothing_behind(study: Study_, tmp_path: Path) -> None:
    study["models"]["plain"]["weights"] = "nowhere.safetensors"
    with pytest.raises(StudyError, match="there is no such file"):
        Study.from_dict(study).run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_arm_that_an_assessment_names_must_exist_before_anything_runs(study: Study_, tmp_path: Path) -> None:
    study["assess"]["damage"]["arms"] = ["fgsm*", "pdg*"]
    with pytest.raises(StudyError, match="no arm is called 'pdg\\*'"):
        Study.from_dict(study).run(tmp_path / "run")


def test_a_model_that_changes_its_input_is_refused(study: Study_, tmp_path: Path) -> None:
    from torch import Tensor, nn

    class InPlace(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sub_(0.5).flatten(1)[:, :10]

    study["models"] = {"spoiler": {"source": "object"}}
    with pytest.raises((ModelError, StudyError), match="changes its input in place"):
        Study.from_dict(study).run(tmp_path / "run", modules={"spoiler": InPlace()})


def test_a_random_model_is_judged_by_many_draws_and_repeats_itself(study: Study_, tmp_path: Path) -> None:
    import torch
    from torch import Tensor, nn

    class Dropping(nn.Module):
        """Answers class 0, but one time in twenty, at random, class 1."""

        def forward(self, x: Tensor) -> Tensor:
            lucky = torch.rand(len(x)) < 0.05
            return nn.functional.one_hot(lucky.long(), 10).float() * 9 + 0 * x.flatten(1)[:, :10]

    study["models"] = {"random": {"source": "object", "expect_accuracy": 0}}
    study["success"] = "prediction"
    study["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": 0}]
    for name in ("first", "second"):
        Study.from_dict(study).run(tmp_path / name, modules={"random": Dropping()})
    rows = outcome_rows(tmp_path / "first")
    assert rows == outcome_rows(tmp_path / "second")
    attacked = [row for row in rows if row["kind"] == "attack"]
    # Samples whose clean answer was the usual one: eps 0 changes nothing, so a success would be a lucky draw.
    usual = [row for row in attacked if row["clean_prediction"] == 0]
    assert len(usual) > 20
    assert all(row["outcome"] == "resisted" for row in usual)
    assert all(row["n_judge"] == 11 for row in usual)
