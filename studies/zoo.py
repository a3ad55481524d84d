"""Classifiers that others trained, from the folder $ADVRISK_ZOO.

The folder holds registry.json, which gives for each name its `dataset`, `arch` (layers as `layer` reads them), `mean`,
`std` and `clean_acc_1000` (its accuracy on the first 1,000 test images, which a slow test checks), and one safetensors
file per name, with the parameters as torch.nn.Sequential names them. Nothing of it comes with advrisk.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.core.names import did_you_mean
from advrisk.parts.models.torch_module import Normalised

_COUNTER = "num_batches_tracked"  # batch normalisation counts its batches; the files leave that out


def folder() -> Path:
    """Where the classifiers lie."""
    named = os.environ.get("ADVRISK_ZOO")
    if not named:
        raise ModelError("set the environment variable ADVRISK_ZOO to the folder that holds registry.json and weights")
    if not (Path(named) / "registry.json").is_file():
        raise ModelError(f"ADVRISK_ZOO is {named}, and there is no registry.json; set it to the folder that holds one")
    return Path(named)


def registered() -> dict[str, dict[str, Any]]:
    """What is known of each classifier."""
    entries: dict[str, dict[str, Any]] = json.loads((folder() / "registry.json").read_text())
    return entries


def net(name: str) -> nn.Module:
    """One of the classifiers, normalising its inputs itself."""
    home, entries = folder(), registered()
    if name not in entries:
        raise ModelError(f"{home / 'registry.json'} has no classifier {name!r}; {did_you_mean(name, entries)}")
    entry, weights = entries[name], home / f"{name}.safetensors"
    if not weights.is_file():
        raise ModelError(f"{weights}: there is no such file; registry.json names it")
    module = nn.Sequential(*[layer(text) for text in entry["arch"].split()])
    wrong = module.load_state_dict(load_file(weights), strict=False)
    missing = [key for key in wrong.missing_keys if not key.endswith(_COUNTER)]
    if missing or wrong.unexpected_keys:
        raise ModelError(
            f"{weights}: these weights do not fit the layers in registry.json: "
            f"missing {missing or 'none'}, unexpected {wrong.unexpected_keys or 'none'}"
        )
    return Normalised(module, tuple(entry["mean"]), tuple(entry["std"]))


def layer(text: str) -> nn.Module:
    """`conv(in,out,kernel,stride,padding)`, `fc(in,out)`, `relu`, …"""
    match = re.fullmatch(r"(\w+)(?:\(([\d,]*)\))?", text)
    kind = match[1] if match else ""
    if match is None or kind not in _MAKERS:
        raise ModelError(
            f"registry.json names a layer {text!r}; known are {', '.join(_MAKERS)}, as in conv(3,16,4,2,1)"
        )
    numbers = [int(number) for number in match[2].split(",")] if match[2] else []
    try:
        return _MAKERS[kind](*numbers)
    except TypeError:
        raise ModelError(f"registry.json names a layer {text!r}, which has too many or too few numbers") from None


def _convolution(before: int, after: int, kernel: int, stride: int, padding: int) -> nn.Module:
    return nn.Conv2d(before, after, kernel, stride, padding)


def _unbiased_convolution(before: int, after: int, kernel: int, stride: int, padding: int) -> nn.Module:
    return nn.Conv2d(before, after, kernel, stride, padding, bias=False)


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


_MAKERS: dict[str, Callable[..., nn.Module]] = {
    "conv": _convolution,
    "convnb": _unbiased_convolution,
    "bn2": nn.BatchNorm2d,
    "fc": nn.Linear,
    "relu": nn.ReLU,
    "flatten": nn.Flatten,
    "maxpool": nn.MaxPool2d,
    "avgpool": nn.AvgPool2d,
    "gap": Mean,
    "resA": Residual,
}
