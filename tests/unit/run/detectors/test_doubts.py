"""What a detector says is worth nothing is not used: MagNet after too little training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from advrisk.core.errors import RunError, StudyError
from advrisk.parts.detectors.magnet import MagNet
from advrisk.parts.models.small import SmallCnn
from advrisk.run.campaign import run_study
from advrisk.run.options import Options
from advrisk.study import study_from


def run(folder: Path, train: int, **settings: Any) -> None:
    torch.manual_seed(0)
    modules: dict[str, nn.Module] = {"net": SmallCnn(size=8, width=4)}
    content = {
        "name": "doubtful",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 8, "train": train},
        "models": {"net": {"source": "object", "expect_accuracy": 0}},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.3}],
        "detectors": [{"name": "magnet", **settings}],
    }
    run_study(study_from(content), folder, options=Options(publish_every_s=0), modules=modules)


@pytest.mark.parametrize(("train", "settings"), [(20, {}), (800, {"learning_rate": 1e30}), (800, {"epochs": 1})])
def test_an_auto_encoder_that_learned_nothing_is_refused(tmp_path: Path, train: int, settings: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match=r"magnet learned nothing of net: its \w+ auto-encoder .* train longer"):
        run(tmp_path, train, **settings)
    assert not list(tmp_path.rglob("net.safetensors")), "what is worth nothing is not kept"


def test_one_that_learned_is_not(tmp_path: Path) -> None:
    run(tmp_path, 800, epochs=60)
    assert list(tmp_path.rglob("net.safetensors"))


def test_a_detector_that_fails_to_tell_ends_the_run_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MagNet, "doubt", lambda *_: 1 / 0)
    with pytest.raises(RunError, match="the detector magnet failed to look at what it learned of net: ZeroDivision"):
        run(tmp_path, 20, epochs=1)
