"""Nets to measure passes with; speed does not depend on their weights."""

from itertools import pairwise

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

LENET = {"source": "torch", "factory": "bench.nets:lenet5", "expect_accuracy": 0}
SURE_LENET = {"source": "torch", "factory": "bench.nets:sure_lenet5", "expect_accuracy": 0}
RESNET = {"source": "torch", "factory": "bench.nets:resnet20", "expect_accuracy": 0}
LINEAR = {"source": "torch", "factory": "bench.nets:linear", "expect_accuracy": 0}


class Block(nn.Module):
    """Two convolutions with batch normalisation, and a way past them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.past = nn.Sequential()
        if stride != 1 or before != after:
            self.past = nn.Sequential(nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(inner)) + self.past(x))


def resnet20() -> nn.Module:
    """Three stages of three blocks: 0.27 million weights."""
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(before, after, 1 if before == after else 2) for before, after in pairwise(widths)]
    stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def lenet5() -> nn.Module:
    """Two convolutions, each with a pooling layer, and two linear layers: 0.65 million weights."""
    first = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(3136, 200), nn.ReLU(), nn.Linear(200, 10))


def sure_lenet5() -> nn.Module:
    """The same, but the first class always wins: no sample leaves an attack."""
    net = lenet5()
    nn.init.constant_(net[-1].bias[:1], 100.0)
    return net


def linear() -> nn.Module:
    """The least that a model of digits can be: what an attack costs beside it is its own."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
