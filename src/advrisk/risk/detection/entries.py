"""A detector against one set of arms: the scores it is made from, and how it is measured. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.detection.arm_sets import ArmSetRates, arm_set_rates
from advrisk.risk.detection.groups import ScoredArm
from advrisk.risk.detection.performance import auroc_estimate, fpr_estimate
from advrisk.risk.detection.roc import Flags, Floats, Integers, chance_auroc, chance_fpr, worst_case_scores

Places = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A detector against some arms, all together. Where none of them broke a sample, `reason` says so."""

    n_arms: int
    n_broken: int  # samples that at least one arm broke
    n_attackable: int  # samples that could be broken: a natural error is none, unless success is another prediction
    successes: float  # arms that broke a sample, on average over the attackable samples
    successes_paper: float  # as the paper counts: over all samples, every arm breaks a natural error
    auroc: Estimate | None = None
    fpr_at_tpr: Estimate | None = None
    chance_auroc: float | None = None  # of a detector that says random numbers
    chance_fpr: float | None = None
    reason: str = ""

    @property
    def above_chance(self) -> float | None:
        """AUROC less its chance level: what groups with other numbers of arms are compared by."""
        return None if self.auroc is None or self.chance_auroc is None else self.auroc.value - self.chance_auroc


@dataclass(frozen=True, eq=False)
class Scored:
    """What one detector says of one model's samples."""

    arms: tuple[ScoredArm, ...]
    success: Flags  # (arms, samples)
    score: Floats  # (arms, samples); counts where there is a success
    clean: Floats  # (samples,)
    judged: Flags | None = None  # (arms, samples) where an arm gave a verdict; None: everywhere
    attackable: Flags | None = None  # (samples,) that could be broken: no natural errors; None: all

    @property
    def verdicts(self) -> Flags:
        """Where an arm gave a verdict."""
        return np.ones_like(self.success) if self.judged is None else self.judged

    @property
    def breakable(self) -> Flags:
        """The samples that could be broken."""
        return np.ones(self.clean.size, dtype=np.bool_) if self.attackable is None else self.attackable


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
    n: int  # attackable samples among those that these arms are judged on
    n_errors: int  # and natural errors

    @classmethod
    def of(cls, scored: Scored, arms: Places, judged: Flags | None = None) -> "Cut":
        """The successes of these arms, on all samples or on those that are judged."""
        among = np.ones(scored.clean.size, dtype=np.bool_) if judged is None else judged
        n, n_errors = int((scored.breakable & among).sum()), int((~scored.breakable & among).sum())
        return cls(arms, scored.success[list(arms)] & among, n, n_errors)

    @property
    def per_sample(self) -> tuple[float, float]:
        """Successful arms per attackable sample; and as the paper counts, natural errors included."""
        hits, n_all = int(self.success.sum()), self.n + self.n_errors
        with_errors = hits + len(self.arms) * self.n_errors
        return hits / self.n if self.n else 0.0, with_errors / n_all if n_all else 0.0

    def worst(self, scored: Scored) -> Floats:
        """The worst-case score of each sample."""
        return worst_case_scores(scored.score[list(self.arms)], self.success)


def measured(scored: Scored, cuts: Sequence[Cut], settings: Settings) -> list[ArmSetRates | None]:
    """Each set of arms; None where it holds no success. All are resampled alike."""
    broken = [place for place, cut in enumerate(cuts) if cut.success.any()]
    found = arm_set_rates(
        scored.clean,
        [cuts[place].worst(scored) for place in broken],
        tpr=settings.tpr,
        level=settings.level,
        resamples=settings.resamples,
        rng=settings.rng(),
    )
    of_place = dict(zip(broken, found, strict=True))
    return [of_place.get(place) for place in range(len(cuts))]


def entry_of(cut: Cut, found: ArmSetRates | None, settings: Settings) -> Entry:
    """What was measured, with its chance level."""
    if found is None:
        reason = "no arm succeeded" if cut.arms else "no arm"
        return Entry(len(cut.arms), 0, cut.n, *cut.per_sample, reason=reason)
    successes: Integers = cut.success.sum(axis=0)
    return Entry(
        len(cut.arms),
        found.n,
        cut.n,
        *cut.per_sample,
        auroc=auroc_estimate(found, settings.level),
        fpr_at_tpr=fpr_estimate(found, settings.level),
        chance_auroc=chance_auroc(successes),
        chance_fpr=chance_fpr(successes, settings.tpr),
    )
