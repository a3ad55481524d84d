"""Classifiers from a folder: built as their registry says, wrong folders refused, real ones as accurate as promised."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from studies import zoo

ARCH = "convnb(1,4,3,1,1) bn2(4) relu resA(4,8,2) resA(8,8,1) gap fc(8,3)"


@pytest.fixture
def weights() -> dict[str, Tensor]:
    """Of ARCH, drawn with variances above 0, and without the counters of batches."""
    module = nn.Sequential(*[zoo.layer(text) for text in ARCH.split()])
    generator = torch.Generator().manual_seed(0)
    drawn = {
        name: torch.rand(value.shape, generator=generator) - (0.0 if name.endswith("running_var") else 0.5)
        for name, value in module.state_dict().items()
    }
    return {name: value for name, value in drawn.items() if not name.endswith("num_batches_tracked")}


@pytest.fixture
def home(tmp_path: Path, weights: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small classifier."""
    save_file(weights, tmp_path / "tiny.safetensors")
    write_registry(tmp_path, {"tiny": {"dataset": "mnist", "arch": ARCH, "mean": [0.5], "std": [0.25]}})
    monkeypatch.setenv("ADVRISK_ZOO", str(tmp_path))
    return tmp_path


def write_registry(folder: Path, entries: dict[str, Any]) -> None:
    (folder / "registry.json").write_text(json.dumps(entries))


def convolved(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """A 3×3 convolution with a border of zeros, as sums over its nine shifted images."""
    height, width = x.shape[2], x.shape[3]
    padded = torch.zeros(*x.shape[:2], height + 2, width + 2, dtype=x.dtype)
    padded[:, :, 1:-1, 1:-1] = x
    shifted = [
        torch.einsum("nihw,oi->nohw", padded[:, :, a : a + height, b : b + width], weight[:, :, a, b])
        for a in range(3)
        for b in range(3)
    ]
    return torch.stack(shifted).sum(0)[:, :, ::stride, ::stride]


def normed(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    weight, bias, mean, var = (
        weights[f"{name}.{part}"].double()[:, None, None] for part in ("weight", "bias", "running_mean", "running_var")
    )
    return (x - mean) / torch.sqrt(var + 1e-5) * weight + bias


def block(x: Tensor, weights: dict[str, Tensor], name: str, stride: int) -> Tensor:
    inner = normed(convolved(x, weights[f"{name}.c1.weight"].double(), stride), weights, f"{name}.b1").clamp(min=0)
    inner = normed(convolved(inner, weights[f"{name}.c2.weight"].double(), 1), weights, f"{name}.b2")
    past = torch.zeros_like(inner)
    first = (inner.shape[1] - x.shape[1]) // 2
    past[:, first : first + x.shape[1]] = x[:, :, ::stride, ::stride]
    return (inner + past).clamp(min=0)


def test_a_classifier_answers_as_its_layers_written_out(home: Path, weights: dict[str, Tensor]) -> None:
    x = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    hidden = convolved((x.double() - 0.5) / 0.25, weights["0.weight"].double(), 1)
    hidden = normed(hidden, weights, "1").clamp(min=0)
    hidden = block(block(hidden, weights, "3", 2), weights, "4", 1)
    expected = hidden.mean((2, 3)) @ weights["6.weight"].double().T + weights["6.bias"].double()
    with torch.no_grad():
        found = zoo.net("tiny").eval()(x)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_layers_without_a_block_are_torchs_own() -> None:
    kinds = {
        "conv(3,16,4,2,1)": "Conv2d(3, 16, kernel_size=(4, 4), stride=(2, 2), padding=(1, 1))",
        "convnb(3,16,3,1,1)": "Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)",
        "fc(100,10)": "Linear(in_features=100, out_features=10, bias=True)",
        "flatten": "Flatten(start_dim=1, end_dim=-1)",
        "maxpool(2)": "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        "avgpool(2)": "AvgPool2d(kernel_size=2, stride=2, padding=0)",
    }
    assert {text: repr(zoo.layer(text)) for text in kinds} == kinds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("cnov(1,2,3,4,5)", "known are conv"), ("fc(1", "known are"), ("fc(1)", "too few"), ("gap(2)", "too many")],
)
def test_a_layer_that_cannot_be_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        zoo.layer(text)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADVRISK_ZOO", raising=False)
    with pytest.raises(ModelError, match="set the environment variable ADVRISK_ZOO"):
        zoo.net("tiny")
    monkeypatch.setenv("ADVRISK_ZOO", str(tmp_path))
    with pytest.raises(ModelError, match=r"no registry\.json"):
        zoo.net("tiny")


def test_a_classifier_that_is_not_there_is_refused(home: Path) -> None:
    with pytest.raises(ModelError, match="no classifier 'tinny'; did you mean 'tiny'"):
        zoo.net("tinny")
    (home / "tiny.safetensors").unlink()
    with pytest.raises(ModelError, match=r"tiny\.safetensors: there is no such file"):
        zoo.net("tiny")


@pytest.mark.parametrize(("arch", "complaint"), [(f"{ARCH} fc(3,2)", "missing"), ("gap", "unexpected")])
def test_weights_that_do_not_fit_are_refused(home: Path, arch: str, complaint: str) -> None:
    write_registry(home, {"tiny": {"dataset": "mnist", "arch": arch, "mean": [0], "std": [1]}})
    with pytest.raises(ModelError, match=rf"do not fit .*{complaint} \['"):
        zoo.net("tiny")


FILES = {"mnist": "mnist_test.npz", "fmnist": "fashion_test.npz", "cifar10": "cifar10_test.npz"}


@pytest.mark.slow
@pytest.mark.skipif(
    not (os.environ.get("ADVRISK_ZOO") and os.environ.get("ADVRISK_DATA")),
    reason="needs classifiers in $ADVRISK_ZOO and images in $ADVRISK_DATA",
)
def test_real_classifiers_are_as_accurate_as_their_registry_says() -> None:
    accuracies = {name: _accuracy(name, entry["dataset"]) for name, entry in zoo.registered().items()}
    assert accuracies == {name: entry["clean_acc_1000"] for name, entry in zoo.registered().items()}


def _accuracy(name: str, dataset: str) -> float:
    """On the first 1,000 images of the test set."""
    with np.load(Path(os.environ["ADVRISK_DATA"]) / FILES[dataset], allow_pickle=False) as file:
        x, y = file["x"][:1000], file["y"][:1000]
    images = torch.from_numpy(x.astype(np.float32) / 255)
    images = images[:, None] if images.dim() == 3 else images.permute(0, 3, 1, 2)
    with torch.no_grad():
        predicted = zoo.net(name).eval()(images).argmax(1).numpy()
    return float((predicted == y).mean())
