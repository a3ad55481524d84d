"""What a part of each kind says about itself, so that a study can be checked without running it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Norm = Literal["l0", "l1", "l2", "linf"]
Keep = Literal["first", "smallest", "strongest", "last"]
Capability = Literal["labels", "scores", "gradients"]
CAPABILITIES: tuple[Capability, ...] = ("labels", "scores", "gradients")  # each gives all before it


@dataclass(frozen=True)
class AttackTraits:
    """What an attack needs of a model, and how it behaves.

    `passes` gives the most forward and backward passes per sample for the bound parameters;
    `within_eps` promises that no proposed point lies beyond eps (the probe checks it).
    """

    needs: Capability
    norms: tuple[Norm, ...]
    passes: Callable[[Mapping[str, Any]], tuple[int, int]]
    use_when: str
    objective: str | None = None
    keep: Keep = "first"
    within_eps: bool = True
    random: bool = False


@dataclass(frozen=True)
class CorruptionTraits:
    """How a corruption behaves: whether two draws differ, and when to use it."""

    use_when: str
    random: bool = True


@dataclass(frozen=True)
class SourceTraits:
    """A source of models or data: when to use it."""

    use_when: str


def gives(capability: Capability, needed: Capability) -> bool:
    """Whether a model of that capability can answer what is needed."""
    return CAPABILITIES.index(capability) >= CAPABILITIES.index(needed)
