"""A detector against one set of arms: the scores it is made from, and how it is measured. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.detection.groups import ScoredArm
from advrisk.risk.detection.measure import Measure, measures
from advrisk.risk.detection.performance import auroc_estimate, fpr_estimate
from advrisk.risk.detection.roc import Flags, Floats, Integers, chance_auroc, chance_fpr, worst_case_scores

Places = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A detector against some arms, all together. Where none of them broke a sample, `reason` says so."""

    n_arms: int
    n_broken: int  # samples that at least one arm broke
    successes: float  # arms that broke a sample, on average over all samples
    auroc: Estimate | None
    fpr_at_tpr: Estimate | None
    chance_auroc: float | None  # of a detector that says random numbers
    chance_fpr: float | None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        estimates = {
            name: None if found is None else found.as_dict()
            for name, found in (("auroc", self.auroc), ("fpr_at_tpr", self.fpr_at_tpr))
        }
        return vars(self) | estimates


@dataclass(frozen=True, eq=False)
class Scored:
    """What one detector says of one model's samples."""

    arms: tuple[ScoredArm, ...]
    success: Flags  # (arms, samples)
    score: Floats  # (arms, samples); counts where there is a success
    clean: Floats  # (samples,)
    judged: Flags | None = None  # (arms, samples) where an arm gave a verdict; None: everywhere

    @property
    def verdicts(self) -> Flags:
        """Where an arm gave a verdict."""
        return np.ones_like(self.success) if self.judged is None else self.judged


@dataclass(frozen=True)
class Settings:
    """How everything is measured."""

    tpr: float
    level: float
    resamples: int
    seed_of_draws: int

    def rng(self) -> np.random.Generator:
        """Always from the beginning: all detectors and groups are resampled alike."""
        return np.random.default_rng(self.seed_of_draws)


@dataclass(frozen=True, eq=False)
class Cut:
    """Some arms, and the successes of theirs that count."""

    arms: Places
    success: Flags  # (arms, samples)
    n: int  # samples on which these arms are looked at

    @classmethod
    def of(cls, scored: Scored, arms: Places) -> "Cut":
        """All successes of these arms."""
        return cls(arms, scored.success[list(arms)], scored.clean.size)

    def worst(self, scored: Scored) -> Floats:
        """The worst-case score of each sample."""
        return worst_case_scores(scored.score[list(self.arms)], self.success)


def measured(scored: Scored, cuts: Sequence[Cut], settings: Settings) -> list[Measure | None]:
    """Each set of arms; None where it holds no success. All are resampled alike."""
    broken = [place for place, cut in enumerate(cuts) if cut.success.any()]
    found = measures(
        scored.clean,
        [cuts[place].worst(scored) for place in broken],
        tpr=settings.tpr,
        level=settings.level,
        resamples=settings.resamples,
        rng=settings.rng(),
    )
    of_place = dict(zip(broken, found, strict=True))
    return [of_place.get(place) for place in range(len(cuts))]


def entry_of(cut: Cut, found: Measure | None, settings: Settings) -> Entry:
    """What was measured, with its chance level."""
    if not cut.arms:
        return Entry(0, 0, 0.0, None, None, None, None, "no arm")
    if found is None:
        return Entry(len(cut.arms), 0, 0.0, None, None, None, None, "no arm succeeded")
    successes: Integers = cut.success.sum(axis=0)
    return Entry(
        n_arms=len(cut.arms),
        n_broken=found.n,
        successes=float(successes.sum() / cut.n),
        auroc=auroc_estimate(found, settings.level),
        fpr_at_tpr=fpr_estimate(found, settings.level),
        chance_auroc=chance_auroc(successes),
        chance_fpr=chance_fpr(successes, settings.tpr),
    )
