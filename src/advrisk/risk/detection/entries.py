"""Entries of the detection table: a detector against one set of arms, from scores. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.detection.arm_sets import ArmSetRates, arm_set_rates
from advrisk.risk.detection.groups import ScoredArm
from advrisk.risk.detection.performance import auroc_estimate, fpr_estimate
from advrisk.risk.detection.roc import Flags, Floats, Integers, chance_auroc, chance_fpr, worst_case_scores

Indices = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A detector against a set of arms; `reason` explains why there is no AUROC."""

    n_arms: int
    n_broken: int  # samples that at least one arm broke
    n_attackable: int  # samples without a natural error; all samples if success is another prediction
    successes: float  # mean number of arms that broke an attackable sample
    successes_paper: float  # the paper's count: mean over all samples, where every arm breaks a natural error
    auroc: Estimate | None = None
    fpr_at_tpr: Estimate | None = None
    chance_auroc: float | None = None  # of a detector with random scores
    chance_fpr: float | None = None
    reason: str = ""

    @property
    def above_chance(self) -> float | None:
        """AUROC minus its chance level, which compares groups with different numbers of arms."""
        return None if self.auroc is None or self.chance_auroc is None else self.auroc.value - self.chance_auroc


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one detector on one model's samples."""

    arms: tuple[ScoredArm, ...]
    success: Flags  # (arms, samples)
    score: Floats  # (arms, samples); used where there is a success
    clean: Floats  # (samples,)
    judged: Flags | None = None  # (arms, samples) where an arm gave a verdict; None: everywhere
    attackable: Flags | None = None  # (samples,) without natural errors; None: all

    @property
    def verdicts(self) -> Flags:
        """Where an arm gave a verdict, (arms, samples)."""
        return np.ones_like(self.success) if self.judged is None else self.judged

    @property
    def breakable(self) -> Flags:
        """Samples that an arm could break, (samples,)."""
        return np.ones(self.clean.size, dtype=np.bool_) if self.attackable is None else self.attackable


@dataclass(frozen=True)
class Settings:
    """Options of every measurement."""

    tpr: float
    level: float
    resamples: int
    seed_of_draws: int

    def rng(self) -> np.random.Generator:
        """A fresh generator, so that all detectors and groups share their resamples."""
        return np.random.default_rng(self.seed_of_draws)


@dataclass(frozen=True, eq=False)
class Cut:
    """A set of arms with the successes that count."""

    arms: Indices
    success: Flags  # (arms, samples)
    n: int  # attackable samples with a verdict
    n_errors: int  # natural errors with a verdict

    @classmethod
    def of(cls, scored: Scored, arms: Indices, judged: Flags | None = None) -> "Cut":
        """Select the successes of these arms, on all samples or on those that are judged."""
        among = np.ones(scored.clean.size, dtype=np.bool_) if judged is None else judged
        n, n_errors = int((scored.breakable & among).sum()), int((~scored.breakable & among).sum())
        return cls(arms, scored.success[list(arms)] & among, n, n_errors)

    @property
    def per_sample(self) -> tuple[float, float]:
        """Successful arms per attackable sample; and the paper's count, which includes natural errors."""
        hits, n_all = int(self.success.sum()), self.n + self.n_errors
        with_errors = hits + len(self.arms) * self.n_errors
        return hits / self.n if self.n else 0.0, with_errors / n_all if n_all else 0.0

    def worst(self, scored: Scored) -> Floats:
        """Worst-case score of each sample."""
        return worst_case_scores(scored.score[list(self.arms)], self.success)


def measured(scored: Scored, cuts: Sequence[Cut], settings: Settings) -> list[ArmSetRates | None]:
    """Measure each set of arms on the same resamples; None for a set without a success."""
    broken = [index for index, cut in enumerate(cuts) if cut.success.any()]
    rates = arm_set_rates(
        scored.clean,
        [cuts[index].worst(scored) for index in broken],
        tpr=settings.tpr,
        level=settings.level,
        resamples=settings.resamples,
        rng=settings.rng(),
    )
    by_index = dict(zip(broken, rates, strict=True))
    return [by_index.get(index) for index in range(len(cuts))]


def entry_of(cut: Cut, rates: ArmSetRates | None, settings: Settings) -> Entry:
    """Entry of a set of arms, with its chance level."""
    if rates is None:
        reason = "no arm succeeded" if cut.arms else "no arm"
        return Entry(len(cut.arms), 0, cut.n, *cut.per_sample, reason=reason)
    successes: Integers = cut.success.sum(axis=0)
    return Entry(
        len(cut.arms),
        rates.n,
        cut.n,
        *cut.per_sample,
        auroc=auroc_estimate(rates, settings.level),
        fpr_at_tpr=fpr_estimate(rates, settings.level),
        chance_auroc=chance_auroc(successes),
        chance_fpr=chance_fpr(successes, settings.tpr),
    )
