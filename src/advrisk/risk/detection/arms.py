"""Arms that evade a detector at a threshold, by how often and at what cost. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.core.traits import TRANSFER
from advrisk.risk.detection.entries import Scored
from advrisk.risk.detection.roc import Flags, Floats, worst_case_scores
from advrisk.risk.proportion import proportion


@dataclass(frozen=True)
class ArmDefeat:
    """One arm against a detector with a threshold."""

    arm: str
    n_attacked: int  # samples that it attacked, without natural errors
    n_broken: int  # of these, broken
    n_unseen: int  # of these, without an alarm
    unseen: Estimate  # their share of the attacked samples
    unseen_paper: Estimate  # the paper's count: share of all samples, including natural errors without an alarm
    n_least: int  # samples on which no other arm scored less
    passes: float | None  # per attacked sample; None if not counted, as for transfer arms, which use a surrogate
    passes_per_unseen: float | None  # all passes of the arm / n_unseen; None if n_unseen is 0


@dataclass(frozen=True)
class Defeat:
    """All arms at the threshold of one detector in front of one model, those that evade it most often first."""

    threshold: float  # an alarm is a score above it
    false_alarms: Estimate  # among all clean inputs
    unseen: Estimate | None  # share broken without an alarm, of attackable samples with a verdict of every arm
    unseen_paper: Estimate | None  # the paper's count: share of all samples, including natural errors without an alarm
    arms: tuple[ArmDefeat, ...]

    in_json: ClassVar[InJson] = {"n_arms": "n_arms", "most_often.arm": "most_often", "cheapest.arm": "cheapest"}

    @property
    def n_arms(self) -> int:
        return len(self.arms)

    @property
    def most_often(self) -> ArmDefeat | None:
        """The arm with the most undetected successes; ties go to the cheaper arm."""
        return self.arms[0] if self.arms and self.arms[0].n_unseen else None

    @property
    def cheapest(self) -> ArmDefeat | None:
        """The arm with the fewest passes per undetected success."""
        counted = [arm for arm in self.arms if arm.passes_per_unseen is not None]
        return min(counted, key=lambda arm: (arm.passes_per_unseen, -arm.n_unseen)) if counted else None


def defeats(
    scored: Scored, indices: Sequence[int], passes: Floats, attacked: Flags, *, threshold: float, level: float
) -> Defeat:
    """Rank the arms at these indices, each of which attacked some sample.

    `passes` and `attacked` are (arms, samples), with nan for passes that were not counted. In the paper, a natural
    error is adversarial under every attack. Here no arm attacks it, so its clean score is used.
    """
    chosen = list(indices)
    success, score, judged = scored.success[chosen], scored.score[chosen], scored.verdicts[chosen]
    unseen = success & ~(score > threshold)
    least = success & (score == worst_case_scores(score, success))
    quiet_error = judged & ~attacked[chosen] & ~(scored.clean > threshold)
    spent = [_spent(scored.arms[arm].family, passes[arm][attacked[arm]]) for arm in chosen]
    arms = [
        ArmDefeat(
            arm=scored.arms[arm].label,
            n_attacked=int(attacked[arm].sum()),
            n_broken=int(success[row].sum()),
            n_unseen=int(unseen[row].sum()),
            unseen=proportion(int(unseen[row].sum()), int(attacked[arm].sum()), level=level),
            unseen_paper=proportion(int((unseen | quiet_error)[row].sum()), int(judged[row].sum()), level=level),
            n_least=int(least[row].sum()),
            passes=_mean(spent[row]),
            passes_per_unseen=_per_unseen(spent[row], int(unseen[row].sum())),
        )
        for row, arm in enumerate(chosen)
    ]
    everywhere = judged.all(axis=0) & bool(chosen)
    return Defeat(
        threshold=threshold,
        false_alarms=proportion(int((scored.clean > threshold).sum()), scored.clean.size, level=level),
        unseen=_share(unseen.any(axis=0), everywhere & attacked[chosen].any(axis=0), level),
        unseen_paper=_share((unseen | quiet_error).any(axis=0), everywhere, level),
        arms=tuple(sorted(arms, key=_by_success)),
    )


def _share(hits: Flags | np.bool_, among: Flags | np.bool_, level: float) -> Estimate | None:
    return proportion(int((hits & among).sum()), int(among.sum()), level=level) if among.any() else None


def _by_success(arm: ArmDefeat) -> tuple[int, float, str]:
    return -arm.n_unseen, np.inf if arm.passes_per_unseen is None else arm.passes_per_unseen, arm.arm


def _spent(family: str | None, passes: Floats) -> Floats | None:
    """Passes of an arm on its samples; None if some were not counted, or were spent on a surrogate (transfer)."""
    return None if family == TRANSFER or np.isnan(passes).any() else passes


def _mean(spent: Floats | None) -> float | None:
    return None if spent is None or spent.size == 0 else float(spent.mean())


def _per_unseen(spent: Floats | None, n_unseen: int) -> float | None:
    return None if spent is None or n_unseen == 0 else float(spent.sum()) / n_unseen
