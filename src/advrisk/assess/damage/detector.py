"""Damage with a detector in front of the models: from its scores of the attacks, and from a curve fitted to them.

The first needs no shape of the curve; the second can be used for other models. The curve is fitted to answers about
the nearest successes, so it should reproduce their damage.
"""

from dataclasses import dataclass

import numpy as np

from advrisk.assess.damage.answers import MONOTONE_OF_RUN, shape_warning, unlike_groups
from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.monte_carlo import scored_walks
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.absolute import EvasionComparison, compare_damage
from advrisk.risk.evasion import fit_bayesian, shape_test
from advrisk.risk.monte_carlo import MonteCarloDamage, walked_answers, walked_damage
from advrisk.study import CLEAN, AlarmSpec


@dataclass(frozen=True)
class DetectedDamage:
    """Damage behind a detector: from its scores, and under the curve fitted to its answers."""

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
    """Damage of one model behind a detector, by the success that an attacker takes, and the false alarms."""

    any_arm: Estimate  # the least suspicious success of all arms: the damage that ranks models
    monte_carlo: Estimate  # the nearest success, as in the paper
    by_curve: Estimate | None  # under the curve fitted to its answers; None if these are all equal
    false_alarms: Estimate | None  # among clean inputs classified correctly


def detect(
    ledger: Ledger, distances: Distances, alarm: AlarmSpec, *, level: float = 0.95, rng: np.random.Generator
) -> DetectedDamage:
    """Estimate damage both ways, and test whether one curve holds for all models and arms."""
    scored = scored_walks(ledger, distances, alarm.name, threshold=alarm.alarm)
    walked, thresholds = scored.walked, scored.thresholds
    monte_carlo = walked_damage(
        walked,
        thresholds,
        detector=scored.detector,
        known_to=scored.known_to,
        warnings=scored.warnings,
        level=level,
        rng=rng,
    )
    answers = walked_answers(walked, thresholds)
    try:
        curve = fit_bayesian(answers.sizes, answers.undetected, guess=None, lapse=None)
    except RiskError as error:
        unfitted = f"No curve was fitted to the answers of {monte_carlo.detector}: {error}."
        return DetectedDamage(monte_carlo, None, (*monte_carlo.warnings, unfitted))
    groups = {"model": answers.models, "arm": [None if arm == CLEAN.id else arm for arm in answers.arms]}
    doubts = unlike_groups(answers.sizes, answers.undetected, groups, rng=rng)
    if doubt := shape_warning(shape_test(curve), MONOTONE_OF_RUN):
        doubts.append(doubt)
    by_curve = compare_damage({model: walk.size for model, walk in walked.items()}, curve, level=level, rng=rng)
    return DetectedDamage(monte_carlo, by_curve, (*monte_carlo.warnings, *doubts))
