"""Networks for runs whose numbers do not matter."""

import torch
from torch import nn

from advrisk.parts.models.small import SmallCnn


def untrained_pair() -> dict[str, nn.Module]:
    """Two untrained nets, called one and two, always the same."""
    made: dict[str, nn.Module] = {}
    for seed, name in enumerate(("one", "two")):
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            made[name] = SmallCnn(size=8, width=4)
    return made


def small() -> nn.Module:
    """A factory for studies."""
    return untrained_pair()["one"]
