"""Looks at a run that goes on: the order of its shards, the level of each look, and what it saw.

`risk.interim` says when to look, and how sure each look must be.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advrisk.core.seeds import key
from advrisk.risk.interim import strict_level
from advrisk.study import StoppingTarget, StudySpec, target_level
from advrisk.study.target import DECIDED


@dataclass(frozen=True)
class InterimResult:
    """What a look at a target saw, at which level."""

    met: bool
    said: str
    level: float


def shard_order(known: Iterable[str], before: Sequence[str], *, seed: int) -> tuple[str, ...]:
    """The order in which shards are run: those that had a place keep it, others follow as the seed draws them."""
    names = set(known)
    kept = [name for name in before if name in names]
    fresh = sorted(names - set(kept), key=lambda name: key("round", seed, name))
    return (*kept, *fresh)


def look_level(target: StoppingTarget, study: StudySpec, share: float, *, n_models: int) -> float | None:
    """The level of a look at a decision, which leaves room for the other looks; None where nothing is decided."""
    if not target.decides:
        return None
    return strict_level(target_level(target.text, study), share, n_models=n_models if target.text == DECIDED else 2)
