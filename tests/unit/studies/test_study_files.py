"""The study files are in order: read without the folders they name, and planned with stand-ins for them."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml
from safetensors.torch import save_file
from torch import nn

import studies
from advrisk import Study
from advrisk.ledger import Ledger, Storage
from advrisk.risk.indicators import Scenario, what_if
from advrisk.run.options import DEFAULTS
from advrisk.run.planning import outline_study, plan_study
from advrisk.run.preparation import add_detectors, load_bench
from studies.indicators_findings import QUESTIONS
from studies.nets import ConvNet
from studies.zoo import layer

FOLDER = Path(studies.__file__).parent
FILES = {"damage-mnist.yaml": (6, 1000, (28, 28)), "damage-cifar10.yaml": (7, 200, (32, 32, 3))}
PAPER = {"fgsm", "pgd", "deepfool", "hopskipjump", "pixel", "threshold"}


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
    for name in ("zoo", "nets"):
        sys.modules.pop(name, None)


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
    bench = load_bench(spec, tmp_path / "run", DEFAULTS)
    cells = list(plan_study(outline_study(bench), Ledger(Storage(tmp_path / "run")), bench).cells())
    n_shards = -(-n_samples // spec.shard)
    arms = {cell.arm.id for cell in cells}
    assert len(cells) == n_models * len(arms) * n_shards
    assert {cell.model for cell in cells} == set(spec.models)
    assert {arm.split("-")[0] for arm in arms} >= {"clean", "minimum", "apgd"}


def test_the_study_of_adaptive_attacks_can_be_planned(tmp_path: Path) -> None:
    spec = Study.load(FOLDER / "adaptive-demo.yaml").spec
    bench = load_bench(spec, tmp_path / "run", DEFAULTS)
    plan = plan_study(outline_study(bench, add_detectors(bench, {})), Ledger(Storage(tmp_path / "run")), bench)
    knowing = [arm for _, arm in plan.assessed if arm.family == "adaptive"]
    assert len(knowing) == 2 * 3 * 4  # models, sizes, detectors
    assert len(plan.watched) == 4
    assert not (tmp_path / "run").exists()


DETECTION = {
    "detection-mnist-convnet.yaml": (1000, (28, 28), "train"),
    "detection-mnist-cnn-a-adv.yaml": (1000, (28, 28), "train"),
    "detection-mnist-adaptive.yaml": (100, (28, 28), "train"),
    "detection-cifar10-cnn-a-adv.yaml": (200, (32, 32, 3), "train_10k"),
}


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("name", DETECTION)
def test_a_detection_study_can_be_planned(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for images and weights; the net itself is the study's own, or a small one with hidden layers."""
    n_samples, shape, half = DETECTION[name]
    content = yaml.safe_load((FOLDER / name).read_text())
    (model,) = content["models"].values()
    size, channels = shape[0], 3 if len(shape) == 3 else 1
    if "weights" in model:
        net = ConvNet(**model["args"])
        save_file(net.state_dict(), tmp_path / "weights.safetensors")
        model["weights"] = "weights.safetensors"
    else:
        arch = f"conv({channels},2,4,4,0) relu flatten fc({2 * (size // 4) ** 2},8) relu fc(8,10)"
        layers = nn.Sequential(*[layer(text) for text in arch.split()])
        save_file(layers.state_dict(), tmp_path / f"{model['args']['name']}.safetensors")
        entry = {"arch": arch, "mean": [0], "std": [1], "dataset": "any"}
        (tmp_path / "registry.json").write_text(json.dumps({model["args"]["name"]: entry}))
    for part, n in (("test", n_samples + 1000), (half, 5000)):
        images = np.zeros((n, *shape), dtype=np.uint8)
        np.savez(tmp_path / f"{content['data']['source']}_{part}.npz", x=images, y=np.arange(n) % 10)
    monkeypatch.setenv("ADVRISK_ZOO", str(tmp_path))
    monkeypatch.setenv("ADVRISK_DATA", str(tmp_path))
    monkeypatch.syspath_prepend(str(FOLDER))
    (tmp_path / name).write_text(yaml.safe_dump(content))
    spec = Study.load(tmp_path / name).spec
    bench = load_bench(spec, tmp_path / "run", DEFAULTS)
    ledger = Ledger(Storage(tmp_path / "run"))
    cells = list(plan_study(outline_study(bench, add_detectors(bench, {})), ledger, bench).cells())
    arms = {cell.arm.id: cell.arm for cell in cells}
    knowing = {arm.params["detector"].partition("@")[0] for arm in arms.values() if arm.family == "adaptive"}
    assert f"{spec.name}.yaml" == name
    assert len(spec.detectors) == (5 if "weights" in model else 4)
    assert len(knowing) == (5 if "adaptive" in name else 0)
    mead = {"deepfool", "square", "spatial", "hopskipjump", "carlini-wagner"}
    assert {arm.family for arm in arms.values()} >= {"pgd", "fgsm", "bim"} | (set() if "adaptive" in name else mead)
    assert len(cells) == len(arms) * -(-n_samples // spec.shard)


def test_the_study_of_indicators_asks_about_networks_that_its_recipe_trains() -> None:
    spec = Study.load(FOLDER / "indicators-mnist.yaml").spec
    trained = yaml.safe_load((FOLDER / "zoo-mnist-recipe.yaml").read_text())["models"]
    for name, model in spec.models.items():
        assert Path(model.params["weights"]).name == f"{name}.safetensors"
        assert model.params["args"] == trained[name]["args"]
    assert len(spec.models) == len(trained) - 4  # the teachers
    assert list(spec.scenarios) == ["scanner", "street", "street-attacked"]
    for question in QUESTIONS:
        what_if(Scenario.from_mapping(question.scenario, spec.scenarios[question.scenario]), question.changes)


@pytest.mark.usefixtures("importable")
def test_the_study_of_defences_can_be_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Study.load(FOLDER / "survival-cifar10.yaml").spec
    entry = {"arch": "flatten fc(3072,10)", "mean": [0], "std": [1], "dataset": "any"}
    zoo = [model.params["args"]["name"] for model in spec.models.values()]
    for classifier in zoo:
        linear = nn.Linear(3072, 10)
        save_file({"1.weight": linear.weight.data, "1.bias": linear.bias.data}, tmp_path / f"{classifier}.safetensors")
    (tmp_path / "registry.json").write_text(json.dumps(dict.fromkeys(zoo, entry)))
    images = np.zeros((200, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "cifar10_test.npz", x=images, y=np.repeat(np.arange(10), 20))
    monkeypatch.setenv("ADVRISK_ZOO", str(tmp_path))
    monkeypatch.setenv("ADVRISK_DATA", str(tmp_path))
    bench = load_bench(spec, tmp_path / "run", DEFAULTS)
    cells = list(plan_study(outline_study(bench), Ledger(Storage(tmp_path / "run")), bench).cells())
    models, arms = {cell.model for cell in cells}, {cell.arm.id: cell.arm for cell in cells}
    assert len(models) == 4 * 8, "bare, and behind seven defences"
    assert len(cells) == len(models) * len(arms)
    assert {arm.family for arm in arms.values()} <= PAPER | {"clean"}
    (shard,) = {cell.shard for cell in cells}
    labels = bench.material.data.y[[bench.material.rows[name] for name in shard.samples]]
    assert np.bincount(labels).tolist() == [10] * 10


def test_the_study_of_depth_asks_about_networks_that_its_recipe_trains() -> None:
    spec = Study.load(FOLDER / "survival-mnist.yaml").spec
    trained = yaml.safe_load((FOLDER / "survival-mnist-recipe.yaml").read_text())["models"]
    assert list(spec.models) == list(trained)
    kinds: dict[tuple[object, object], int] = {}
    for name, model in spec.models.items():
        assert Path(model.params["weights"]).name == f"{name}.safetensors"
        assert model.params["args"] == trained[name]["args"]
        assert model.tags["depth"] == 2 * 3 * model.params["args"]["blocks"] + 2
        assert model.tags["noise"] == trained[name].get("sigma", 0)
        kind = (model.tags["depth"], model.tags["noise"])
        kinds[kind] = kinds.get(kind, 0) + 1
    assert len(kinds) == 9
    assert set(kinds.values()) == {5}
    assert spec.data.order == "balanced"
    assert {name for arm in spec.arms for name in arm.attack or ()} <= PAPER


@pytest.mark.usefixtures("importable")
def test_the_study_of_certificates_with_timm_can_be_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for timm that knows how it is called, and small images."""
    spec = Study.load(FOLDER / "certificate-imagenet.yaml").spec
    shutil.copy(FOLDER / f"{spec.name}.yaml", tmp_path)
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (1300, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "imagenet.npz", x=pictures, y=rng.integers(0, 1000, 1300))
    called: list[str] = []

    def create_model(model_name: str, *, pretrained: bool) -> nn.Module:
        assert pretrained
        called.append(model_name)
        return nn.Sequential(nn.Flatten(), nn.Linear(192, 1000))

    stand_in = ModuleType("timm")
    vars(stand_in)["create_model"] = create_model
    monkeypatch.setitem(sys.modules, "timm", stand_in)
    spec = Study.load(tmp_path / f"{spec.name}.yaml").spec
    bench = load_bench(spec, tmp_path / "run", DEFAULTS)
    plan = plan_study(outline_study(bench), Ledger(Storage(tmp_path / "run")), bench)
    vits = [f"vit_{size}_patch16_224" for size in ("small", "base", "large")]
    assert called == [*vits, "resnet34", "resnet50", "resnet101"]
    assert {(one.model, one.arm.norm, one.rounds) for one in plan.searches} == {
        (model, norm, 50) for model in spec.models for norm in ("linf", "l2")
    }
    assert [axis.start for axis in plan.searches[0].axes] == [(0.005, 0.01, 0.015), (0.01, 0.02, 0.03)]
    assert sum(len(shard.samples) for shard in plan.calibrate) == 1000


def test_both_studies_of_certificates_ask_about_the_same_models_samples_and_sizes() -> None:
    weak, strong = (yaml.safe_load((FOLDER / f"certificate-mnist{name}.yaml").read_text()) for name in ("", "-pgd"))
    assert all(weak[name] == strong[name] for name in ("seed", "data", "models", "success", "assess", "shard"))
    assert weak["search"][0]["eps"] == strong["arms"][0]["eps"] == sorted(strong["arms"][0]["eps"])
