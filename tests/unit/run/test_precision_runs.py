"""One net in five precisions, and one that answers in bfloat16 by itself: a whole run, its tags and its covariate."""

import json

import pytest
import torch
from torch import Tensor, nn

from advrisk import Run, Study
from advrisk.core.errors import StudyError

PRECISIONS = ("float64", "float32", "bfloat16", "float16", "int8")


class Casting(nn.Module):
    """Computes and answers in bfloat16, whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net().to(torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.net(x.to(torch.bfloat16))
        return answer


def net() -> nn.Module:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    plain = {"source": "object", "expect_accuracy": 0}
    study = {
        "name": "precisions",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 40},
        "models": {one: plain | {"precision": one} for one in PRECISIONS} | {"own": plain, "casting": plain},
        "success": "prediction",
        "arms": [
            {"attack": "pgd", "norm": "linf", "eps": [0.02, 0.05], "steps": 10},
            {"attack": "square", "norm": "linf", "eps": 0.05, "queries": 10},
        ],
        "detectors": ["confidence"],
    }
    modules = {one: net() for one in (*PRECISIONS, "own")} | {"casting": Casting()}
    return Study.from_dict(study).run(tmp_path_factory.mktemp("run"), modules=modules)


def test_no_row_fails_and_detectors_score_in_every_precision(run: Run) -> None:
    outcomes = run.ledger.query("SELECT outcome, count(*) AS n FROM outcomes GROUP BY outcome").to_pylist()
    assert {row["outcome"] for row in outcomes} == {"resisted", "success"}
    scores = run.ledger.query("SELECT count(DISTINCT model) AS n FROM scores JOIN cells USING (cell)").to_pylist()
    assert scores == [{"n": 7}]


def test_attacks_break_about_as_many_samples_in_every_precision(run: Run) -> None:
    rows = run.ledger.query(
        "SELECT model, avg((outcome = 'success')::INT) AS broken FROM outcomes WHERE eps = 0.05 AND family = 'pgd' "
        "GROUP BY model"
    ).to_pylist()
    broken = {row["model"]: row["broken"] for row in rows}
    assert broken["own"] > 0.3
    assert all(abs(share - broken["own"]) <= 0.1 for share in broken.values()), broken


def test_all_models_have_the_tag_and_their_own_digest(run: Run) -> None:
    rows = {row["model"]: row for row in run.ledger.query("SELECT model, digest, tags FROM models").to_pylist()}
    tags = {name: json.loads(row["tags"])["precision"] for name, row in rows.items()}
    assert tags == {one: one for one in PRECISIONS} | {"own": "float32", "casting": "bfloat16"}
    assert rows["own"]["digest"] == rows["float32"]["digest"]
    assert len({row["digest"] for row in rows.values()}) == 6


def test_it_is_a_covariate_of_survival(run: Run) -> None:
    fit = run.survival(covariates=["eps", "precision"], arms=["pgd-*"]).fit
    names = {one.name for one in fit.coefficients if "precision" in one.name}
    assert len(names) == 4, "five precisions, one of which is the reference"


def test_an_unknown_precision_is_refused_with_what_is_known() -> None:
    study = {
        "name": "precisions",
        "data": {"source": "digits", "evaluate": 4},
        "models": {"net": {"source": "object", "precision": "float8"}},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    }
    with pytest.raises(StudyError, match=r"models.net.precision: found 'float8'; did you mean 'float"):
        Study.from_dict(study)


@pytest.mark.parametrize(("share", "hint"), [(92, "did you mean 92 %"), (-0.1, "from 0 to 1"), ("many", "a number")])
def test_an_accuracy_is_a_share(share: object, hint: str) -> None:
    study = {
        "name": "shares",
        "data": {"source": "digits", "evaluate": 4},
        "models": {"net": {"source": "object", "expect_accuracy": share}},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    }
    with pytest.raises(StudyError, match=hint):
        Study.from_dict(study)
