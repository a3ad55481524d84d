"""A model that answers at random, with closed-form truth: what a query meets, everywhere the same.

The logits are 0 and `SLOPE (x0 - x1)`, and `gauss-out` adds normal noise of deviation `SIGMA` to both: a query at
margin m errs with probability Phi(-m / (SIGMA sqrt 2)). Attacks within eps take 2 SLOPE eps from the margin.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from torch import nn

from advrisk import Run, Study
from advrisk.core.errors import RiskError, StudyError

N, SLOPE, SIGMA, EPS = 240, 10.0, 1.0, 0.05
WRONG = 24  # the first samples have the other label
ARMS = ["pgd", "fgsm"]


def err(margin: Any) -> Any:
    return ndtr(-np.asarray(margin) / (SIGMA * np.sqrt(2)))


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(SLOPE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = self.slope * (x[:, 0] - x[:, 1])
        return torch.stack([torch.zeros_like(score), score], 1)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("line")
    margin = np.random.default_rng(0).uniform(1.6, 2.4, N)
    side = np.where(np.arange(N) % 2 == 0, 1, -1)
    x = 0.5 + np.stack([side * margin, -side * margin], 1) / (2 * SLOPE)
    y = (side > 0).astype(np.int64)
    y[:WRONG] = 1 - y[:WRONG]
    np.savez(folder / "line.npz", x=x.astype(np.float32), y=y)
    return {
        "name": "line",
        "seed": 5,
        "data": {"source": "npz", "path": str(folder / "line.npz"), "evaluate": N, "order": "file", "bounds": [0, 1]},
        "models": {"plain": {"source": "object"}},
        "defences": {"noisy": {"of": "plain", "name": "gauss-out", "sigma": SIGMA, "noise_on": "logits"}},
        "arms": [
            {"attack": ARMS, "norm": "linf", "eps": EPS, "keep": "strongest"},
            {"attack": "deepfool", "norm": "l2"},
        ],
        "scenarios": {"evil": {"evil": {"weight": 0.5, "of": ARMS}}},
        "assess": {"damage": {"norm": "linf", "arms": ["pgd*", "fgsm*"]}},
    }


@pytest.fixture(scope="module")
def run(study: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Study.from_dict(study).run(tmp_path_factory.mktemp("run") / "run", modules={"plain": Linear()})


@pytest.fixture(scope="module")
def truth(study: dict[str, Any]) -> dict[str, Any]:
    """Errors per query of these samples, clean and attacked; those that are mostly wrong are not attacked."""
    x, y = (np.load(study["data"]["path"])[name] for name in ("x", "y"))
    margin = SLOPE * (x[:, 0] - x[:, 1]) * np.where(y == 1, 1, -1)
    clean = err(margin)
    return {"clean": clean, "attacked": np.where(margin > 0, err(margin - 2 * SLOPE * EPS), clean)}


def near(estimate: Any, value: float) -> bool:
    """Four standard errors of the draws alone, the samples being given."""
    return bool(abs(estimate.value - value) < 4 * 0.5 / np.sqrt(11 * N))


def test_the_draws_are_in_the_ledger(run: Run) -> None:
    rows = run.query(
        "SELECT o.*, s.label, u.draws AS scores FROM outcomes o JOIN samples s USING (sample) "
        "JOIN outputs u ON u.cell = o.cell AND u.sample = o.sample WHERE model = 'noisy'"
    ).to_pylist()
    drawn = [row for row in rows if row["draws"]]
    assert {row["outcome"] for row in rows if not row["draws"]} == {"already_wrong"}
    for row in drawn:
        assert len(row["draws"]) == 11
        assert np.mean([said != row["label"] for said in row["draws"]]) == pytest.approx(row["success_rate"], abs=1e-6)
        scores = np.array(row["scores"]).reshape(11, 2)
        assert scores.argmax(1).tolist() == row["draws"]
        assert np.exp(scores).sum(1) == pytest.approx(1, abs=1e-5)
    assert run.query("SELECT count(draws) AS n FROM outcomes WHERE model = 'plain'")["n"][0].as_py() == 0


@pytest.mark.parametrize("success", ["label", "prediction"])
@pytest.mark.parametrize("n_arms", [1, 6])
def test_the_risk_of_coin_tosses_is_a_half(study: dict[str, Any], success: str, n_arms: int, tmp_path: Path) -> None:
    """Inputs that most draws get wrong are not attacked: valued by the draws that chose them, they would cost 0.62."""
    tossed = {"noisy": {"of": "plain", "name": "gauss-out", "sigma": 1000, "noise_on": "logits"}}
    arms = [{"attack": "pgd", "norm": "linf", "eps": EPS, "keep": "strongest", "steps": n + 1} for n in range(n_arms)]
    asked = study | {"defences": tossed, "arms": arms, "success": success, "scenarios": {"evil": {"pgd": 1.0}}}
    asked["assess"] = {"damage": {"norm": "linf"}}
    run = Study.from_dict(asked).run(tmp_path / "run", modules={"plain": Linear()})
    (row,) = [row for row in run.damage().models if row.model == "noisy"]
    for estimate in (run.indicators().of("evil").of("noisy").risk, row.clean_accuracy, row.robust_accuracy[EPS]):
        assert near(estimate, 0.5)
        assert estimate.low < 0.5 < estimate.high


def test_coin_tosses_below_the_nearest_success_are_a_half(study: dict[str, Any], tmp_path: Path) -> None:
    """Where no attack came as near, the clean inputs count, by draws that did not choose them."""
    tossed = {"noisy": {"of": "plain", "name": "gauss-out", "sigma": 1000, "noise_on": "logits"}}
    arms = [{"attack": "pgd", "norm": "linf", "eps": 0.4, "keep": "smallest", "steps": 3}]
    asked = study | {"defences": tossed, "arms": arms, "scenarios": {}, "assess": {"damage": {"norm": "linf"}}}
    run = Study.from_dict(asked).run(tmp_path / "run", modules={"plain": Linear()})
    (row,) = [row for row in run.damage(thresholds=[0.001, 0.4]).models if row.model == "noisy"]
    for estimate in row.robust_accuracy.values():
        assert near(estimate, 0.5)


def test_risk_is_what_a_query_meets(run: Run, truth: dict[str, Any]) -> None:
    assert any("Answers at random: noisy." in note for note in run.indicators().notes)
    assert any(note.startswith("Answers at random: noisy. Clean accuracy") for note in run.damage().notes)
    tree = run.indicators().of("evil").of("noisy").tree
    assert near(tree.at("clean").value, truth["clean"].mean())
    attacked, value = tree.at("evil").value, truth["attacked"].mean()
    assert near(attacked, value)
    assert attacked.low < value < attacked.high
    majority = run.query(
        "SELECT avg((outcome IN ('success', 'already_wrong'))::DOUBLE) AS v FROM outcomes WHERE model = 'noisy' "
        "AND family = 'pgd'"
    )["v"][0].as_py()
    assert value - majority > 0.06, "most of the draws say less"
    assert not attacked.low < majority < attacked.high


def test_accuracy_is_what_a_query_meets(run: Run, truth: dict[str, Any]) -> None:
    clean, attacked = 1 - truth["clean"].mean(), 1 - truth["attacked"].mean()
    found = {row.model: row for row in run.damage().models}["noisy"]
    assert found.clean_accuracy is not None
    assert near(found.clean_accuracy, clean)
    assert near(found.success_ratio[EPS], 1 - attacked)
    size = f"{EPS:g}"
    required = [
        "clean_accuracy.noisy >= 0.5",
        f"robust_accuracy.noisy at {size} >= 0.3",
        f"broken.noisy at {size} <= 0.9",
        "clean_accuracy.noisy <= clean_accuracy.plain",
        f"broken.plain at {size} <= broken.noisy at {size}",
    ]
    held = run.gate(required).results
    wanted = [clean, attacked, 1 - attacked, clean - (1 - WRONG / N), WRONG / N - (1 - attacked)]
    for one, value in zip(held, wanted, strict=True):
        assert near(one.estimate, value), one.requirement
        assert one.verdict == "pass", one.requirement
    beside = {one.model: one for one in run.indicators().robustness if one.norm == "linf"}["noisy"]
    assert beside.adversarial_risk is not None
    assert near(beside.adversarial_risk, 1 - attacked)


def test_the_table_of_arms_counts_queries(run: Run, truth: dict[str, Any]) -> None:
    shares = {row["arm"]: row["share"] for row in run.arms() if row["model"] == "noisy"}
    for arm, share in shares.items():
        if arm.startswith(("clean", "pgd")):
            wanted = truth["clean" if arm == "clean" else "attacked"].mean()
            assert abs(share - wanted) < 4 * 0.5 / np.sqrt(11 * N), arm
    assert {row["share"] for row in run.arms() if row["model"] == "plain" and row["arm"] == "clean"} == {WRONG / N}


def test_two_runs_are_compared_by_queries(run: Run, truth: dict[str, Any]) -> None:
    found = {one.quantity: one for one in run.compare(run, models={"plain": "noisy"}).results}
    assert near(found["clean accuracy"].new_value, 1 - truth["clean"].mean())
    robust = found[f"robust accuracy at {EPS:g}"]
    assert near(robust.new_value, 1 - truth["attacked"].mean())
    assert robust.old_value is not None
    assert robust.old_value.value == 1 - WRONG / N
    assert near(robust.worse_by, truth["attacked"].mean() - WRONG / N)
    assert robust.p is not None
    assert robust.p > 0.99


def test_a_size_between_those_of_attacks_is_no_majority(run: Run) -> None:
    """What the walk back met there is a success by most draws, which is no share of queries."""
    found = run.damage(thresholds=[EPS / 2, EPS])
    for row in found.models:
        assert list(row.success_ratio) == list(row.robust_accuracy) == [EPS]
    assert any(note.startswith("Left out: 0.025. No attack had that eps") for note in found.notes)
    alone = run.part(models=["plain"]).damage(thresholds=[EPS / 2, EPS])
    assert list(alone.models[0].success_ratio) == [EPS / 2, EPS]
    (held,) = run.gate([f"broken.noisy at {EPS / 2} <= 0.9"]).results
    assert held.verdict == "undecided"
    assert "noisy answers at random, and no attack had an eps of 0.025" in held.reason
    compared = run.compare(run, models={"plain": "noisy"}, sizes=[EPS / 2]).results
    (broken,) = [one for one in compared if one.quantity == f"robust accuracy at {EPS / 2:g}"]
    assert broken.verdict == "undecided"
    assert "answers at random" in broken.reason


# Class change, and the paper's mean distance


def test_a_class_change_later_is_refused_where_wrong_samples_were_left_alone(run: Run) -> None:
    with pytest.raises(RiskError, match=r"class-change .* `success: prediction`"):
        run.indicators(losses=["class-change"])
    calm = run.indicators(scenarios={"calm": {"evil": {"weight": 0.0, "of": ARMS}}}, losses=["misclassified"])
    assert calm.results


def test_every_class_can_be_changed_without_a_limit(study: dict[str, Any], tmp_path: Path) -> None:
    content = study | {
        "defences": {},
        "losses": ["misclassified", "class-change"],
        "arms": [{"attack": "deepfool", "norm": "l2"}],
        "scenarios": {"evil": {"evil": {"weight": 1.0, "of": ["deepfool"]}}},
        "assess": {},
    }
    with pytest.raises(StudyError, match=r"losses\[1\]: class-change .* deepfool.*`success: prediction`"):
        Study.from_dict(content).run(tmp_path / "label", modules={"plain": Linear()})
    assert not (tmp_path / "label").exists(), "before anything ran"
    run = Study.from_dict(content | {"success": "prediction"}).run(tmp_path / "run", modules={"plain": Linear()})
    found = run.indicators()
    assert found.of("evil", "class-change").of("plain").risk.value == pytest.approx(1.0)
    assert found.of("evil", "misclassified").of("plain").risk.value == pytest.approx(1.0), (
        "what is wrong stays so: nobody mends it"
    )
    (beside,) = found.robustness
    x, y = (np.load(study["data"]["path"])[name] for name in ("x", "y"))
    distance = np.abs(x[:, 0] - x[:, 1]) / np.sqrt(2)
    correct = (x[:, 0] > x[:, 1]) == (y == 1)
    assert beside.mean_distance is not None
    assert beside.rho_1 is not None
    assert beside.mean_distance.value == pytest.approx(distance[correct].mean(), rel=0.03)
    assert beside.rho_1.value == pytest.approx(np.where(correct, distance, 0.0).mean(), rel=0.03)
    assert (beside.rho_1.n, beside.mean_distance.n_already_wrong) == (N, WRONG)
