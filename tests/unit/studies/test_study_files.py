"""The study files are in order: read without the folders they name, and planned with stand-ins for them."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from torch import nn

import studies
from advrisk import Study
from advrisk.ledger import Ledger
from advrisk.run.campaign import DEFAULTS, know_detectors, set_up
from advrisk.run.question import plan_study

FOLDER = Path(studies.__file__).parent
FILES = {"damage-mnist.yaml": (6, 1000, (28, 28)), "damage-cifar10.yaml": (7, 200, (32, 32, 3))}


@pytest.mark.parametrize("name", FILES)
def test_a_study_is_read_without_weights_and_images(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADVRISK_ZOO", raising=False)
    monkeypatch.delenv("ADVRISK_DATA", raising=False)
    spec = Study.load(FOLDER / name).spec
    n_models, n_samples, _ = FILES[name]
    assert f"{spec.name}.yaml" == name
    assert len(spec.models) == n_models
    assert spec.data.evaluate == n_samples
    assert spec.success == "label"
    assert spec.assess.damage.norm == "linf"
    assert len(spec.assess.damage.thresholds or ()) == 2


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The factories lie beside the study file, where the runner finds them; it leaves that folder on the path."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("zoo", None)


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("name", FILES)
def test_a_study_can_be_planned(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_models, n_samples, shape = FILES[name]
    spec = Study.load(FOLDER / name).spec
    n_features = int(np.prod(shape))
    entry = {"arch": f"flatten fc({n_features},10)", "mean": [0], "std": [1], "dataset": "any"}
    zoo = [model.params["args"]["name"] for model in spec.models.values()]
    for classifier in zoo:
        linear = nn.Linear(n_features, 10)
        save_file({"1.weight": linear.weight.data, "1.bias": linear.bias.data}, tmp_path / f"{classifier}.safetensors")
    (tmp_path / "registry.json").write_text(json.dumps(dict.fromkeys(zoo, entry)))
    images = np.zeros((n_samples, *shape), dtype=np.uint8)
    np.savez(tmp_path / f"{spec.data.source}_test.npz", x=images, y=np.arange(n_samples) % 10)
    monkeypatch.setenv("ADVRISK_ZOO", str(tmp_path))
    monkeypatch.setenv("ADVRISK_DATA", str(tmp_path))
    bench = set_up(spec, tmp_path / "run", DEFAULTS)
    cells = list(plan_study(spec, Ledger(tmp_path / "run" / "ledger"), bench).cells())
    n_shards = -(-n_samples // spec.shard)
    arms = {cell.arm.id for cell in cells}
    assert len(cells) == n_models * len(arms) * n_shards
    assert {cell.model for cell in cells} == set(spec.models)
    assert {arm.split("-")[0] for arm in arms} >= {"clean", "minimum", "apgd"}


def test_the_study_of_adaptive_attacks_can_be_planned(tmp_path: Path) -> None:
    spec = Study.load(FOLDER / "adaptive-demo.yaml").spec
    bench = set_up(spec, tmp_path / "run", DEFAULTS)
    plan = plan_study(spec, Ledger(tmp_path / "run" / "ledger"), bench, know_detectors(bench, {}))
    knowing = [arm for _, arm in plan.assessed if arm.family == "adaptive"]
    assert len(knowing) == 2 * 3 * 4  # models, sizes, detectors
    assert len(plan.watched) == 4
    assert not (tmp_path / "run").exists()
