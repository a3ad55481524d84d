"""Networks whose forward can be changed without a trace in weights, layers or answers to fixed inputs."""

import sys
from pathlib import Path

PLAIN = "        return self.net(x)\n"
# The fixed inputs are uniform noise with a mean of 0.5: none is so dark, and a fifth of the digits are.
ROLLED = "        y = self.net(x)\n        return torch.where((x.mean((1, 2, 3)) < 0.28)[:, None], y.roll(1, 1), y)\n"
SAME = "        y = self.net(x)  # in other words\n        return y\n"

_SOURCE = """\
import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))

    def forward(self, x):
"""


def write_net(folder: Path, forward: str) -> None:
    """`nets_of_a_test:Plain` in a file, as if a new process were to import it."""
    (folder / "nets_of_a_test.py").write_text(_SOURCE + forward)
    sys.modules.pop("nets_of_a_test", None)
