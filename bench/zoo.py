"""Classifiers that others trained, from the folder $ADVRISK_ZOO, and real images from $ADVRISK_DATA.

The folder holds registry.json, which gives for each name its `dataset`, `arch` (a list of layers), `mean` and `std`,
and one safetensors file per name. Nothing of it comes with advrisk; without it, benchmarks use the demo's models.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file
from torch import Tensor, nn

from advrisk.parts.models.torch_module import Normalised
from bench.cells import DIGITS

_DATA = {"mnist": "mnist", "fmnist": "fashion-mnist", "cifar10": "cifar10"}


def folder() -> Path | None:
    """Where the classifiers lie, if they are there."""
    named = os.environ.get("ADVRISK_ZOO")
    return Path(named) if named and os.environ.get("ADVRISK_DATA") else None


def registered() -> dict[str, dict[str, Any]]:
    """What is known of each classifier."""
    home = folder()
    entries: dict[str, dict[str, Any]] = json.loads((home / "registry.json").read_text()) if home else {}
    return entries


def data_and_model(name: str) -> dict[str, dict[str, Any]]:
    """Those of a study; without the folder, of the demo's model of that name."""
    if not folder():
        return {"data": DIGITS, "model": {"source": "demo", "name": name}}
    data = {"source": _DATA[registered()[name]["dataset"]]}
    return {"data": data, "model": {"source": "torch", "factory": "bench.zoo:net", "args": {"name": name}}}


def net(name: str) -> nn.Module:
    """One of the classifiers, normalising its inputs itself."""
    home, entry = folder(), registered()[name]
    module = nn.Sequential(*[_layer(text) for text in entry["arch"].split()])
    module.load_state_dict(load_file(f"{home}/{name}.safetensors"), strict=False)  # counters of batches are not there
    return Normalised(module, tuple(entry["mean"]), tuple(entry["std"]))


def _layer(text: str) -> nn.Module:
    """`conv(in,out,kernel,stride,padding)`, `fc(in,out)`, `relu`, …"""
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?", text)
    assert match, text
    numbers = [int(number) for number in match[2].split(",")] if match[2] else []
    kind = match[1]
    if kind in ("conv", "convnb"):
        before, after, kernel, stride, padding = numbers
        return nn.Conv2d(before, after, kernel, stride, padding, bias=kind == "conv")
    makers: dict[str, Any] = {
        "bn2": nn.BatchNorm2d,
        "fc": nn.Linear,
        "relu": nn.ReLU,
        "flatten": nn.Flatten,
        "maxpool": nn.MaxPool2d,
        "avgpool": nn.AvgPool2d,
        "gap": Mean,
        "resA": Residual,
    }
    made: nn.Module = makers[kind](*numbers)
    return made


class Mean(nn.Module):
    """The mean over height and width."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class Residual(nn.Module):
    """Two convolutions and a way past them that takes every other pixel and pads channels with zeros."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.c2, self.b2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.stride, self.padding = stride, (after - before) // 2

    def forward(self, x: Tensor) -> Tensor:
        inner = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
        if self.stride > 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.padding, self.padding))
        return F.relu(inner + x)
