"""Cells that can be followed by hand.

The model has two features, and the larger one names the class. A sample (1, 0) is of class 0; the point
(1, a) is a success for a > 1, at linf distance a.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits, CorruptionTraits
from advrisk.engine import Space
from advrisk.parts import REGISTRIES
from advrisk.plan import Cell, Shard
from advrisk.run.perturb import target_of
from advrisk.study import CLEAN, Arm
from advrisk.testing import toys

LARGER = toys.Linear(torch.eye(2), torch.zeros(2))


@dataclass(frozen=True)
class Scene:
    """Ways to set up what `run` works on."""

    model: Any = LARGER.model
    clean: Arm = CLEAN

    def target(self, n=3, *, x0=None, label=None, model=None, space=None, criterion="label"):
        model = model or self.model
        x0 = torch.tensor([[1.0, 0.0]]).repeat(n, 1) if x0 is None else x0
        label = torch.zeros(len(x0), dtype=torch.int64) if label is None else label
        return target_of(model, space or Space.box(-10, 10), x0, label, criterion)

    def arm(self, **changes):
        return replace(Arm("mine-linf-5", "attack", "mine", norm="linf", eps=5.0, keep="first"), **changes)

    def cell(self, arm, n=3, *, samples=None, repeat=0):
        samples = samples or tuple(f"s{number}" for number in range(n))
        return Cell("c" * 32, "r" * 32, "larger", arm, Shard("shard", samples), repeat)

    def registries(self, function, *, within_eps=True, random=False, exhaustive=False):
        """The usual parts, with one attack (or corruption) called `mine` in place of all others."""
        attacks, corruptions = Registry("attacks"), Registry("corruptions")
        traits = AttackTraits(
            needs="labels",
            norms=("linf",),
            passes=lambda *_: (99, 99),
            use_when="tests",
            within_eps=within_eps,
            random=random,
            exhaustive=exhaustive,
        )
        attacks.register("mine", traits=traits)(function)
        corruptions.register("mine", traits=CorruptionTraits("tests", "tests"))(function)
        return replace(REGISTRIES, attacks=attacks, corruptions=corruptions)


@pytest.fixture
def scene():
    return Scene()
