"""Damage with a detector in front of the models: by asking it about the attacks, and by a curve fitted to its answers.

The first needs no shape of the curve; the second can be used for other models. The curve is fitted to answers about
the nearest successes, so it should agree with the damage of these.
"""

from dataclasses import dataclass

import numpy as np

from advrisk.assess.damage.answers import MONOTONE_OF_RUN, shape_warning, unlike_groups
from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.monte_carlo import watch
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.absolute import EvasionComparison, compare_damage
from advrisk.risk.evasion import fit_bayesian, shape_test
from advrisk.risk.monte_carlo import MonteCarloDamage, walked_answers, walked_damage
from advrisk.study import CLEAN, AlarmSpec


@dataclass(frozen=True)
class DetectedDamage:
    """What a detector leaves of the attacks: asked about them, and under the curve fitted to its answers."""

    monte_carlo: MonteCarloDamage
    by_curve: EvasionComparison | None
    notes: tuple[str, ...] = ()

    def of(self, model: str) -> "DetectorDamage":
        return DetectorDamage(
            any_arm=self.monte_carlo.estimates[model],
            monte_carlo=self.monte_carlo.nearest[model],
            by_curve=self.by_curve.estimates[model] if self.by_curve else None,
            false_alarms=self.monte_carlo.false_alarms[model],
        )


@dataclass(frozen=True)
class DetectorDamage:
    """Damage with a detector in front of one model, by the success that an attacker takes, and what else it does."""

    any_arm: Estimate  # of all arms, the success that looks most innocent: the damage that models are ranked by
    monte_carlo: Estimate  # the nearest success, as in the paper
    by_curve: Estimate | None  # under the curve fitted to its answers; None where these are all alike
    false_alarms: Estimate | None  # among clean inputs classified correctly


def detect(
    ledger: Ledger, distances: Distances, asked: AlarmSpec, *, level: float = 0.95, rng: np.random.Generator
) -> DetectedDamage:
    """Both estimates with a detector that has scored the run, and whether one curve holds for all models and arms."""
    watched = watch(ledger, distances, asked.name, threshold=asked.alarm)
    walked, thresholds = watched.walked, watched.thresholds
    found = walked_damage(
        walked,
        thresholds,
        detector=watched.detector,
        known_to=watched.known_to,
        warnings=watched.warnings,
        level=level,
        rng=rng,
    )
    answers = walked_answers(walked, thresholds)
    try:
        curve = fit_bayesian(answers.sizes, answers.undetected, guess=None, lapse=None)
    except RiskError as error:
        unfitted = f"No curve was fitted to the answers of {found.detector}: {error}."
        return DetectedDamage(found, None, (*found.warnings, unfitted))
    groups = {"model": answers.models, "arm": [None if arm == CLEAN.id else arm for arm in answers.arms]}
    doubts = unlike_groups(answers.sizes, answers.undetected, groups, rng=rng)
    if doubt := shape_warning(shape_test(curve), MONOTONE_OF_RUN):
        doubts.append(doubt)
    by_curve = compare_damage({model: walk.size for model, walk in walked.items()}, curve, level=level, rng=rng)
    return DetectedDamage(found, by_curve, (*found.warnings, *doubts))
