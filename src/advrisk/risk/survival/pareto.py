"""Pareto front of models: clean accuracy, failures under attack, and training cost.

One model dominates another if it is at least as good by every criterion and better by one. Values are estimates, so a
comparison may be undecided: some interval of a difference holds zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate

Dominance = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class Criterion:
    """A value of every model, with paired differences: `difference[a, b]` is that of a minus that of b."""

    name: str
    values: Mapping[str, float]
    difference: Mapping[tuple[str, str], Estimate]
    more_is_better: bool

    def gain(self, a: str, b: str) -> float:
        """By how much a is better than b, by the values."""
        difference = self.values[a] - self.values[b]
        return difference if self.more_is_better else -difference

    def surely_better(self, a: str, b: str) -> bool:
        """Whether the whole interval of the difference lies on a's side."""
        found = self.difference[a, b]
        return found.low > 0 if self.more_is_better else found.high < 0

    def surely_not_worse(self, a: str, b: str) -> bool:
        """Whether no part of the interval lies on b's side."""
        found = self.difference[a, b]
        return found.low >= 0 if self.more_is_better else found.high <= 0


@dataclass(frozen=True)
class Standing:
    """Position of one model relative to the front."""

    model: str
    on_front: bool  # by the values: no model dominates it
    dominated_by: tuple[str, ...]  # by the values
    decided: bool  # whether the intervals decide the two above
    undecided_against: tuple[str, ...]


def dominates(a: str, b: str, criteria: Sequence[Criterion]) -> bool:
    """Whether one model dominates another by the values."""
    gains = [one.gain(a, b) for one in criteria]
    return min(gains) >= 0 and max(gains) > 0


def surely_dominates(a: str, b: str, criteria: Sequence[Criterion]) -> Dominance:
    """Dominance by the intervals: `no` if b is surely better in a criterion, or a surely not worse but never better."""
    if any(one.surely_better(b, a) for one in criteria):
        return "no"
    if all(one.surely_not_worse(a, b) for one in criteria):
        return "yes" if any(one.surely_better(a, b) for one in criteria) else "no"
    return "undecided"


def pareto_set(models: Sequence[str], criteria: Sequence[Criterion]) -> tuple[Standing, ...]:
    """Position of every model by its values, and whether the intervals decide it."""
    if not models or not criteria:
        raise RiskError(f"a comparison needs models and criteria, found {len(models)} and {len(criteria)}")
    dominated: dict[str, list[str]] = {model: [] for model in models}
    answers: dict[str, dict[str, Dominance]] = {model: {} for model in models}
    for a, b in permutations(models, 2):
        answers[b][a] = surely_dominates(a, b, criteria)
        if dominates(a, b, criteria):
            dominated[b].append(a)
    return tuple(_standing(model, tuple(dominated[model]), answers[model]) for model in models)


def _standing(model: str, dominated_by: tuple[str, ...], answers: Mapping[str, Dominance]) -> Standing:
    """Position of one model; decided if another surely dominates it, or surely none does."""
    open_ = tuple(other for other, answer in answers.items() if answer == "undecided")
    sure = any(answer == "yes" for answer in answers.values()) if dominated_by else not open_
    return Standing(model, not dominated_by, dominated_by, sure, () if sure and dominated_by else open_)
