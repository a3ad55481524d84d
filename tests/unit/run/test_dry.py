"""What a run would cost: passes are counted, time is measured on cells tried out."""

import time

import pytest
import torch
from torch import nn

from advrisk.core.registry import Part
from advrisk.core.traits import AttackTraits
from advrisk.ledger import Ledger
from advrisk.parts.attacks import attacks
from advrisk.run import dry
from advrisk.run.campaign import run_study
from advrisk.run.walk_back import LINE
from advrisk.study import study_from

STEP_S = 0.01


def slow(probe, *, steps: int = 10) -> None:
    """Takes its time beside the passes, and gets nowhere."""
    for _ in range(steps):
        time.sleep(STEP_S)
        rows = probe.active()
        probe.forward(probe.x0[rows], rows, gradient=False)


class Knowing(nn.Module):
    """Has about every tenth digit right: always says the same class."""

    def forward(self, x):
        return torch.eye(10, device=x.device)[0] + 0 * x.flatten(1)[:, :1]


@pytest.fixture
def planned(tmp_path, monkeypatch):
    traits = AttackTraits("scores", ("linf",), lambda given, _: (given["steps"], 0), "tests")
    monkeypatch.setitem(attacks._parts, "slow", Part("attacks", "slow", slow, 1, traits))

    def plan(evaluate=64, steps=10, **study):
        content = {
            "name": "toy",
            "data": {"source": "digits", "evaluate": evaluate},
            "models": {"same": {"source": "object", "expect_accuracy": 0}},
            "arms": [{"attack": "slow", "eps": 0.1, "steps": steps}],
            "shard": 32,
        }
        found = dry.dry_run(study_from(content | study), tmp_path / "run", modules={"same": Knowing()})
        assert not (tmp_path / "run").exists(), "a dry run must write nothing"
        return found

    return plan


def test_passes_are_those_of_attack_and_judge_at_most(planned):
    found = planned()
    assert (found.n_cells, found.n_skipped, found.n_rows, found.workers) == (4, 0, 128, 1)
    assert (found.n_forward, found.n_backward) == (64 * (10 + 2 + LINE + 1), 0)
    assert found.by_arm == {"clean": 64, "slow-linf-0.1": 64 * (12 + LINE)}


def test_what_an_attack_does_beside_its_passes_counts(planned):
    seconds = planned().by_model["same"]
    assert 2 * 10 * STEP_S < seconds < 10 * 2 * 10 * STEP_S


def test_inputs_that_are_not_kept_are_crafted_again_for_each_detector(planned):
    """64 samples in two cells; of those with an attack, the passes are those of attack and judge once more for each."""
    kept = planned(detectors=["confidence", {"name": "feature-squeezing", "bits": 1}])
    assert kept.n_crafted_again == 0
    found = planned(detectors=["confidence", {"name": "feature-squeezing", "bits": 1}], keep_inputs="none")
    assert (found.n_cells, found.n_crafted_again) == (4, 4)
    assert found.n_forward == kept.n_forward + 2 * 64 * (12 + LINE)
    assert found.by_arm == {"clean": 64, "slow-linf-0.1": 3 * 64 * (12 + LINE)}
    assert found.seconds > kept.seconds + 2 * 2 * 10 * STEP_S
    assert planned(keep_inputs="none").n_crafted_again == 0, "nobody asks for them"


def test_a_detector_that_is_added_to_a_run_without_inputs_has_them_crafted_again(tmp_path):
    content = {
        "name": "toy",
        "data": {"source": "digits", "evaluate": 8},
        "models": {"same": {"source": "object", "expect_accuracy": 0}},
        "success": "prediction",
        "arms": [{"attack": "pgd", "norm": "linf", "eps": [0.1, 1.0], "steps": 4, "keep": "last"}],
        "keep_inputs": "none",
    }
    torch.manual_seed(0)
    modules = {"same": nn.Sequential(nn.Flatten(), nn.Linear(64, 10))}
    run_study(study_from(content), tmp_path, modules=modules)
    assert dry.dry_run(study_from(content), tmp_path, modules=modules).n_forward == 0
    found = dry.dry_run(study_from(content | {"detectors": ["confidence"]}), tmp_path, modules=modules)
    broken = (
        Ledger.open(tmp_path).query("SELECT DISTINCT cell, arm FROM outcomes WHERE outcome = 'success'").to_pylist()
    )
    assert (found.n_cells, found.n_crafted_again) == (0, len(broken))
    assert {arm for arm, passes in found.by_arm.items() if passes} == {row["arm"] for row in broken} != set()
    assert found.n_forward > 0
    assert found.seconds > 0


def test_a_long_cell_is_tried_for_a_moment_only(planned):
    began = time.perf_counter()
    found = planned(evaluate=32, steps=2000)
    assert time.perf_counter() - began < 10
    assert 2000 * STEP_S < found.seconds < 10 * 2000 * STEP_S


def test_no_cell_is_thought_to_outlast_its_limit(planned):
    found = planned(evaluate=32, steps=2000, max_cell_s=2)
    assert 2 < found.by_model["same"] < 3


def test_the_longest_cell_is_the_least_that_many_workers_take(planned, monkeypatch):
    monkeypatch.setattr(dry, "worker_count", lambda *_: 100)
    found = planned(evaluate=64, steps=200)
    assert found.workers == 100
    assert found.seconds - dry._START_S > 200 * STEP_S


def test_samples_that_are_all_wrong_take_no_attack(planned, monkeypatch):
    monkeypatch.setattr(Knowing, "forward", lambda self, x: _wrong(x))
    found = planned(evaluate=8, steps=2000, success={"target": 1})
    assert found.by_model["same"] < 2000 * STEP_S / 4


def _wrong(x):
    return torch.eye(10)[1] + 0 * x.flatten(1)[:, :1]


def test_passes_that_nobody_knows_are_named_and_left_out(planned):
    arms = [{"attack": "slow", "eps": 0.1}, {"attack": "foolbox", "method": "LinfPGD", "norm": "linf", "eps": 0.1}]
    found, without = planned(arms=arms), planned()
    assert found.uncounted == ["foolbox-linf-0.1,method=LinfPGD"]
    assert without.uncounted == []
    assert (found.n_forward, found.by_arm) == (without.n_forward, without.by_arm)
    assert found.n_cells == without.n_cells + 2


def test_inputs_to_score_are_counted_and_what_must_learn_first_is_named(planned, monkeypatch):
    monkeypatch.setattr(dry, "_score_s", lambda *_: 1000.0)
    data = {"source": "digits", "evaluate": 64, "calibrate": 5, "train": 20}
    found = planned(data=data, detectors=["confidence", "magnet"])
    assert found.n_scores == 2 * (64 + 64 + 5)  # clean, attacked, to calibrate
    assert found.lessons == ("magnet to same",)
    assert 133_000 < found.seconds < 134_000  # of the one that need not learn
    assert planned(data=data).n_scores == 0
