"""Algorithm 1 on a run: each attacker's successes and a detector's scores of them, read from the ledger.

`risk.monte_carlo` computes the damage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.walk import arms_that_know, calibration_scores, find_detector, is_imported, walks
from advrisk.core.names import counted
from advrisk.ledger import Ledger
from advrisk.risk.monte_carlo import (
    DetectorAnswers,
    Floats,
    MonteCarloDamage,
    Threshold,
    Walk,
    model_thresholds,
    walked_answers,
    walked_damage,
)


@dataclass(frozen=True, eq=False)
class ScoredWalks:
    """Every model's walk with a detector's scores, and the alarm thresholds."""

    detector: str  # its full name in the ledger
    walked: Mapping[str, Walk]
    thresholds: Mapping[str, float]
    known_to: tuple[str, ...]  # arms that are adapted to this detector
    warnings: tuple[str, ...]


def monte_carlo_damage(
    ledger: Ledger,
    distances: Distances,
    detector: str,
    *,
    threshold: Threshold,
    level: float = 0.95,
    rng: np.random.Generator,
) -> MonteCarloDamage:
    """Algorithm 1 on a run's ledger, with a detector that has scored it.

    `detector` is its name (`confidence`) or full name (`confidence@22e228c9`). `threshold` is a
    score, or `{"false_alarms": 0.05}`: then every model gets the smallest threshold above which at
    most that share of its clean inputs lies, taken from the calibration split.
    """
    scored = scored_walks(ledger, distances, detector, threshold=threshold)
    return walked_damage(
        scored.walked,
        scored.thresholds,
        detector=scored.detector,
        known_to=scored.known_to,
        warnings=scored.warnings,
        level=level,
        rng=rng,
    )


def scored_walks(ledger: Ledger, distances: Distances, detector: str, *, threshold: Threshold) -> ScoredWalks:
    """Read every model's walk and the detector's scores from a run's ledger."""
    name = find_detector(ledger, detector)
    walked = walks(ledger, distances, name)
    clean = {model: walk.clean_score for model, walk in walked.items()}
    thresholds, lacking = alarm_thresholds(ledger, name, clean, threshold)
    warnings = on_uncalibrated(ledger, {name: lacking})
    return ScoredWalks(name, walked, thresholds, arms_that_know(ledger, name, distances.arms), warnings)


def detector_answers(ledger: Ledger, distances: Distances, detector: str, *, threshold: Threshold) -> DetectorAnswers:
    """The detector's answers to every clean input (size 0) and every nearest success, model by model.

    A curve fitted to them gives the surrogate estimate, for comparison with the Monte Carlo one.
    """
    scored = scored_walks(ledger, distances, detector, threshold=threshold)
    return walked_answers(scored.walked, scored.thresholds)


def alarm_thresholds(
    ledger: Ledger, detector: str, clean_scores: Mapping[str, Floats], threshold: Threshold
) -> tuple[dict[str, float], list[str]]:
    """Each model's threshold, and the models without a scored calibration sample, which use `clean_scores`."""
    calibration = calibration_scores(ledger, detector) if isinstance(threshold, Mapping) else {}
    return model_thresholds(clean_scores, threshold, calibration)


def on_uncalibrated(ledger: Ledger, lacking: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One warning for all detectors (-> models) whose thresholds come from the inputs that evaluate them."""
    names = [f"{detector} ({', '.join(models)})" for detector, models in lacking.items() if models]
    if not names:
        return ()
    n_aside = ledger.query("SELECT count(*) AS n FROM samples WHERE split = 'calibrate'")["n"][0].as_py()
    if not n_aside:
        remedy = "set `calibrate` under `data`, for example to 200"
    elif any(is_imported(ledger, detector) for detector, models in lacking.items() if models):
        remedy = f"import the scores of the calibration split too ({counted(n_aside, 'sample')})"
    else:
        remedy = "run the study again with these detectors, which then score the calibration split"
    return (
        f"{'; '.join(names)}: the threshold for a rate of false alarms comes from the evaluation split itself, as no "
        f"sample of the calibration split was scored. The rate is optimistic; {remedy}.",
    )
