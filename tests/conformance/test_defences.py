"""Every registered defence around toy models; and the kit itself against broken defences."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from advrisk.core.registry import Part, Registry
from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw
from advrisk.parts.defences import Defence, defences
from advrisk.testing import ConformanceError, check_defence

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "conf": [{"threshold": 0.4}, {"threshold": 0.999}],
    "feature-squeezing": [{"bits": 1}, {"bits": 4, "gradient": "exact"}, {"bits": 64}],
    "gauss-at-input": [{"sigma": 0.1}],
    "gauss-out": [{"sigma": 0.01}, {"sigma": 1.0}, {"sigma": 0.5, "noise_on": "logits"}],
    "jpeg": [{}, {"quality": 10, "gradient": "exact"}],
    "median-smoothing": [{}, {"window": 2}],
}


@pytest.mark.parametrize("part", list(defences), ids=lambda part: part.name)
def test_keeps_its_promises(part: Part[DefenceTraits]) -> None:
    for params in SETTINGS[part.name]:
        check_defence(part, params=params)


@dataclass(frozen=True, kw_only=True)
class Shouting(Defence):
    """Uses a global generator."""

    def outputs(self, answer: Tensor, draw: Draw) -> Tensor:
        return answer + torch.randn(answer.shape)


@dataclass(frozen=True, kw_only=True)
class Crowded(Defence):
    """Looks at its batch mates."""

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:
        return x - x.mean(0)


@dataclass(frozen=True, kw_only=True)
class Spoiling(Defence):
    """Writes into its input."""

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:
        return x.mul_(0.5)


@dataclass(frozen=True, kw_only=True)
class Cutting(Defence):
    """Cuts slopes off."""

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:
        return x.detach().round()


@dataclass(frozen=True, kw_only=True)
class Fixed(Defence):
    """Says that it draws, and does not."""


@pytest.mark.parametrize(
    ("broken", "traits", "complaint"),
    [
        (Shouting, DefenceTraits("never", needs="scores", random=True), "answer the same from the same streams"),
        (Crowded, DefenceTraits("never"), "alike whatever their batch mates"),
        (Spoiling, DefenceTraits("never"), "leave its input"),
        (Cutting, DefenceTraits("never"), "let slopes through"),
        (Fixed, DefenceTraits("never", random=True), "random exactly if its traits say so"),
    ],
)
def test_a_broken_promise_is_seen(broken: type[Defence], traits: DefenceTraits, complaint: str) -> None:
    registry: Registry[DefenceTraits] = Registry("defences")
    registry.register("broken", traits=traits)(broken)
    with pytest.raises(ConformanceError, match=complaint):
        check_defence(registry.get("broken"))
