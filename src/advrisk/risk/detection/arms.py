"""Which arm gets past a detector at a threshold most often, and which at the least cost. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.detection.roc import Flags, Floats, worst_case_scores
from advrisk.risk.detection.table import Scored
from advrisk.risk.proportion import proportion


@dataclass(frozen=True)
class ArmDefeat:
    """One arm against a detector with a threshold."""

    arm: str
    n_broken: int  # samples
    n_unseen: int  # of these, without an alarm
    unseen: Estimate  # their share of all samples
    n_least: int  # samples on which no other arm scored less
    passes: float | None  # per attacked sample; None where nobody counted
    passes_per_unseen: float | None  # all passes of the arm / n_unseen; None where there is none

    def as_dict(self) -> dict[str, Any]:
        return vars(self) | {"unseen": self.unseen.as_dict()}


@dataclass(frozen=True)
class Defeat:
    """All arms at the threshold of one detector in front of one model, those that get past it most often first."""

    threshold: float  # an alarm is a score above it
    false_alarms: Estimate  # among all clean inputs
    unseen: Estimate  # samples that at least one arm broke without an alarm
    arms: tuple[ArmDefeat, ...]

    @property
    def most_often(self) -> ArmDefeat | None:
        """The arm with the most unseen successes; of equal ones the cheaper."""
        return self.arms[0] if self.arms and self.arms[0].n_unseen else None

    @property
    def cheapest(self) -> ArmDefeat | None:
        """The arm with the fewest passes for an unseen success."""
        known = [arm for arm in self.arms if arm.passes_per_unseen is not None]
        return min(known, key=lambda arm: (arm.passes_per_unseen, -arm.n_unseen)) if known else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "false_alarms": self.false_alarms.as_dict(),
            "unseen": self.unseen.as_dict(),
            "most_often": self.most_often.arm if self.most_often else None,
            "cheapest": self.cheapest.arm if self.cheapest else None,
            "arms": [arm.as_dict() for arm in self.arms],
        }


def defeats(
    scored: Scored, places: Sequence[int], passes: Floats, attacked: Flags, *, threshold: float, level: float
) -> Defeat:
    """Of the arms at these places; `passes` and `attacked` are (arms, samples), passes nan where nobody counted."""
    chosen = list(places)
    success, score = scored.success[chosen], scored.score[chosen]
    unseen = success & ~(score > threshold)
    least = success & (score == worst_case_scores(score, success))
    n = scored.clean.size
    found = [
        ArmDefeat(
            arm=scored.arms[place].label,
            n_broken=int(success[row].sum()),
            n_unseen=int(unseen[row].sum()),
            unseen=proportion(int(unseen[row].sum()), n, level=level),
            n_least=int(least[row].sum()),
            passes=_mean(passes[place], attacked[place]),
            passes_per_unseen=_per_unseen(passes[place], attacked[place], int(unseen[row].sum())),
        )
        for row, place in enumerate(chosen)
    ]
    return Defeat(
        threshold=threshold,
        false_alarms=proportion(int((scored.clean > threshold).sum()), n, level=level),
        unseen=proportion(int(unseen.any(axis=0).sum()), n, level=level),
        arms=tuple(sorted(found, key=_by_success)),
    )


def _by_success(arm: ArmDefeat) -> tuple[int, float, str]:
    return -arm.n_unseen, np.inf if arm.passes_per_unseen is None else arm.passes_per_unseen, arm.arm


def _mean(passes: Floats, attacked: Flags) -> float | None:
    spent = passes[attacked]
    return float(spent.mean()) if spent.size and not np.isnan(spent).any() else None


def _per_unseen(passes: Floats, attacked: Flags, n_unseen: int) -> float | None:
    spent = passes[attacked]
    return None if n_unseen == 0 or np.isnan(spent).any() else float(spent.sum()) / n_unseen
