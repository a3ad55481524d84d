"""Losses and scenarios are looked at before anything runs; a complaint names file, line and path in the tree."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.parts.data import Dataset
from advrisk.plan import ModelCard
from advrisk.run.checks.scenarios import refuse_losses, refuse_scenarios
from advrisk.study import CLEAN, Arm, StudySpec, load_study

NOISE = Arm("gaussian-noise,sigma=0.1", "corruption", "gaussian-noise", cause="noise")
PGD = Arm("pgd-linf-0.1-ace", "attack", "pgd", norm="linf", eps=0.1)
NET = ModelCard("net", "d1", "gradients", 3)
Load = Callable[..., StudySpec]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def made(**sections: Any) -> StudySpec:
        content = {
            "name": "town",
            "data": {"source": "digits", "evaluate": 4},
            "models": {"net": {"source": "object", "expect_accuracy": 0}},
            "arms": [{"corruption": "gaussian-noise", "sigma": 0.1}],
            **sections,
        }
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return load_study(tmp_path / "study.yaml")

    return made


def dataset(n: int) -> Dataset:
    strata = {"light": np.array(["day", "day", "night", "dusk"][:n])}
    x, y = np.zeros((n, 2), dtype=np.float32), np.array([0, 1, 2, 0][:n])
    return Dataset("four", x, y, 3, strata=strata)


def check(study: StudySpec) -> None:
    refuse_scenarios(study, [CLEAN, NOISE, PGD], dataset(4), [0, 1, 2], REGISTRIES)


@pytest.mark.parametrize(
    "tree",
    [
        {"gaussian-noise": 0.3},
        {"noise": "1/3", "pgd": 0.1},
        {"wet": {"weight": 0.3, "of": {"noise": 0.5}}, "evil": {"weight": {"beta": [1, 99]}, "arms": ["pgd*"]}},
        {"dirichlet": True, "noise": 3, "clean": 97},
        {"strata": {"light": {"day": 0.2, "night": 0.8}}, "noise": {"weight": 1, "where": {"light": "night"}}},
    ],
)
def test_scenarios_that_the_study_can_answer(load: Load, tree: dict[str, Any]) -> None:
    check(load(scenarios={"town": tree}))


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        ({"noise": 0.7, "pgd": 0.6}, "scenarios.town: the weights sum to 1.3, more than 1: 0.7 + 0.6"),
        ({"noise": -0.1}, "scenarios.town.noise: a weight is a share from 0 to 1, found -0.1"),
        ({"wet": {"weight": 0.1, "of": {}}}, "scenarios.town.wet.of: names of branches are needed"),
        ({"wet": {"weight": 0.1, "of": {"mist": 1}}}, "scenarios.town.wet.of.mist: no arm fits 'mist'"),
        ({"noise": {"weight": 0.1, "where": {"light": "dusk"}}}, "scenarios.town.noise.where: "),
        ({"noise": {"weight": 0.1, "where": {"lihgt": "day"}}}, "did you mean 'light'?"),
        ({"noise": {"wieght": 0.1}}, "did you mean 'weight'?"),
        ({"noise": 0.1, "strata": {"site": {"north": 1}}}, "scenarios.town.strata"),
        ({"noise": 0.1, "strata": {"light": {"dusk": 1}}}, "scenarios.town.strata"),
    ],
)
def test_scenarios_that_it_cannot(load: Load, tree: dict[str, Any], complaint: str) -> None:
    study = load(scenarios={"town": tree})
    with pytest.raises(StudyError) as caught:
        check(study)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(f"{study.where.path}:"), "with its line"


def test_a_known_corruption_that_is_not_among_the_arms_is_offered(load: Load) -> None:
    study = load(scenarios={"town": {"gaussian-noise": 0.3}})
    with pytest.raises(StudyError, match=r"no arm fits 'gaussian-noise'.*; add to `arms`: `- \{corruption: gaussian-n"):
        refuse_scenarios(study, [CLEAN, PGD], dataset(1), [0], REGISTRIES)


@pytest.mark.parametrize("tree", [None, [], 0.3, {}, "rain"])
def test_a_scenario_is_a_tree(load: Load, tree: object) -> None:
    with pytest.raises(StudyError, match=r"study.yaml:\d+: scenarios.town: must be a mapping of branches to weights"):
        load(scenarios={"town": tree})


def test_losses_that_models_can_answer(load: Load, tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(",0,1,2\n0,0,1,5\n1,1,0,1\n2,9,1,0\n")
    road = {"name": "cost-matrix", "path": "costs.csv"}
    refuse_losses(load(losses=["misclassified", "confidence-drop", road, road | {"as": "again"}]), [NET], [])


@pytest.mark.parametrize(
    ("losses", "model", "complaint"),
    [
        (["misclasified"], NET, r"losses\[0\]: no losses called .* did you mean 'misclassified'\?"),
        (["class-change", {"name": "cost-matrix"}], NET, r"losses\[1\]: cost-matrix needs either `path`"),
        ([{"name": "cost-matrix", "path": "no.csv"}], NET, r"losses\[0\]: .*no.csv: cannot be read"),
        ([{"name": "cost-matrix", "costs": [[0, 1], [1, 0]]}], NET, "2 x 2 costs, but there are 3 classes"),
        (["misclassified", "misclassified"], NET, r"losses: .*2 are called 'misclassified'"),
        (
            ["confidence-drop"],
            ModelCard("tree", "d", "labels", 3),
            "needs scores of a model, but tree gives labels only",
        ),
    ],
)
def test_losses_that_they_cannot(load: Load, losses: list[Any], model: ModelCard, complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        refuse_losses(load(losses=losses), [model], [CLEAN, NOISE])


def test_a_class_change_under_attack_is_judged_against_the_clean_prediction(load: Load) -> None:
    entry = {"name": "class-change", "as": "changed"}
    arms = [CLEAN, NOISE, PGD]
    refuse_losses(load(losses=["misclassified", entry], success="prediction"), [NET], arms)
    refuse_losses(load(losses=[entry]), [NET], [CLEAN, NOISE])
    remedy = r"study.yaml:\d+: losses\[1\]: changed asks whether .* `success: label` .*pgd.*write `success: prediction`"
    with pytest.raises(StudyError, match=remedy):
        refuse_losses(load(losses=["misclassified", entry]), [NET], arms)
    with pytest.raises(StudyError, match=r"with a target .*write `success: prediction`"):
        refuse_losses(load(losses=["misclassified", entry], success={"target": 1}), [NET], arms)
