"""Interim analyses: the order of shards, and the level and result of each analysis.

`risk.interim` schedules the analyses and spends alpha.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advrisk.core.seeds import key
from advrisk.risk.interim import strict_level
from advrisk.study import StoppingTarget, StudySpec, target_level
from advrisk.study.target import DECIDED


@dataclass(frozen=True)
class InterimResult:
    """The result of an interim analysis of a target, and its level."""

    met: bool
    said: str
    level: float


def shard_order(shards: Iterable[str], before: Sequence[str], *, seed: int) -> tuple[str, ...]:
    """The order in which shards run: earlier ones keep their position, others follow in an order from the seed."""
    names = set(shards)
    kept = [name for name in before if name in names]
    fresh = sorted(names - set(kept), key=lambda name: key("round", seed, name))
    return (*kept, *fresh)


def look_level(target: StoppingTarget, study: StudySpec, share: float, *, n_models: int) -> float | None:
    """The level of an interim analysis after alpha spending; None if the target decides nothing."""
    if not target.decides:
        return None
    return strict_level(target_level(target.text, study), share, n_models=n_models if target.text == DECIDED else 2)
