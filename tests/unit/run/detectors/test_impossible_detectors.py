"""Detectors that could never learn, or that nobody asked about, are refused before anything is crafted or planned."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from advrisk.core.errors import StudyError
from advrisk.ledger.known_detectors import add_imported_detectors
from advrisk.run.campaign import run_study
from advrisk.run.dry import dry_run
from advrisk.run.options import Options
from advrisk.study import study_from


class Functional(nn.Module):
    """One layer that runs as a module; the head is a function, so that no hidden layer is found by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(64, 16)
        self.head = nn.Parameter(torch.randn(10, 16))

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(torch.relu(self.body(x.flatten(1))), self.head)


def net() -> nn.Module:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return Functional()


def content(*detectors: Any, **changes: Any) -> dict[str, Any]:
    return {
        "name": "impossible",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 8, "train": 60},
        "models": {"net": {"source": "object", "expect_accuracy": 0}},
        "success": "prediction",
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.3}],
        "detectors": list(detectors),
    } | changes


def lid(**settings: Any) -> dict[str, Any]:
    arms = [{"attack": "pgd", "norm": "linf", "eps": 0.5, "steps": 5, "keep": "last"}]
    return {"name": "lid", "neighbours": 5, "minibatch": 20, "layers": ["body"], "arms": arms} | settings


def ran(folder: Path, spec: dict[str, Any]) -> None:
    run_study(study_from(spec), folder, options=Options(publish_every_s=0), modules={"net": net()})


def dry(folder: Path, spec: dict[str, Any]) -> None:
    dry_run(study_from(spec), folder, modules={"net": net()})


def test_a_layer_that_is_named_is_looked_at_though_none_stands_out(tmp_path: Path) -> None:
    ran(tmp_path / "run", content(lid()))
    assert list((tmp_path / "run" / "detectors").rglob("net.safetensors"))


@pytest.mark.parametrize("carry_out", [ran, dry])
@pytest.mark.parametrize(
    ("detector", "complaint"),
    [
        (lid(layers=None), r"detectors\[0\]: lid reads hidden layers, but net has no hidden layer"),
        (lid(layers=["bodi"]), r"detectors\[0\]: lid reads .* net has no layer 'bodi'; did you mean 'body'\?"),
        (lid(batches=3), r"lid with these settings learns from at least 61 samples of the split `train`, found 60"),
    ],
)
def test_what_could_never_be_learned_is_refused_before_anything_is_crafted(
    tmp_path: Path, carry_out: Callable[..., None], detector: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(StudyError, match=complaint):
        carry_out(tmp_path / "run", content(detector))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("carry_out", [ran, dry])
def test_a_question_about_detectors_without_one_is_refused(tmp_path: Path, carry_out: Callable[..., None]) -> None:
    asked = {"assess": {"detection": {"tpr": 0.9}}}
    with pytest.raises(StudyError, match=r"assess\.detection: asks about detectors, and the study has none; add `det"):
        carry_out(tmp_path / "run", content(**asked))
    assert not (tmp_path / "run").exists()
    carry_out(tmp_path / "some", content("confidence", **asked))
    carry_out(tmp_path / "none", content())


def test_imported_scores_may_be_asked_about(tmp_path: Path) -> None:
    ran(tmp_path, content())
    add_imported_detectors(tmp_path, ["eye@12345678"])
    ran(tmp_path, content(assess={"detection": {"tpr": 0.9}}))
