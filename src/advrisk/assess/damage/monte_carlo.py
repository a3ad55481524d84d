"""Algorithm 1 on a run: what its attackers arrive at and what a detector says of it, read from the ledger.

`risk.monte_carlo` makes the damage of it.
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
class Watched:
    """What a detector says of all that attackers arrive at, and where its alarms begin."""

    detector: str  # its full name in the ledger
    walked: Mapping[str, Walk]
    thresholds: Mapping[str, float]
    known_to: tuple[str, ...]  # arms
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
    most that share of its clean inputs lies, taken from the samples set aside to calibrate.
    """
    watched = watch(ledger, distances, detector, threshold=threshold)
    return walked_damage(
        watched.walked,
        watched.thresholds,
        detector=watched.detector,
        known_to=watched.known_to,
        warnings=watched.warnings,
        level=level,
        rng=rng,
    )


def watch(ledger: Ledger, distances: Distances, detector: str, *, threshold: Threshold) -> Watched:
    """What every attacker arrives at and what the detector says of it, read from a run's ledger once."""
    name = find_detector(ledger, detector)
    walked = walks(ledger, distances, name)
    clean = {model: walk.clean_score for model, walk in walked.items()}
    thresholds, lacking = alarm_thresholds(ledger, name, clean, threshold)
    warnings = on_uncalibrated(ledger, {name: lacking})
    return Watched(name, walked, thresholds, arms_that_know(ledger, name, distances.arms), warnings)


def detector_answers(ledger: Ledger, distances: Distances, detector: str, *, threshold: Threshold) -> DetectorAnswers:
    """What the detector says of every clean input (size 0) and of every nearest success, model by model.

    A curve that is fitted to them gives the surrogate estimate, to stand beside the Monte Carlo one.
    """
    watched = watch(ledger, distances, detector, threshold=threshold)
    return walked_answers(watched.walked, watched.thresholds)


def alarm_thresholds(
    ledger: Ledger, detector: str, clean_scores: Mapping[str, Floats], threshold: Threshold
) -> tuple[dict[str, float], list[str]]:
    """One for each model; and the models of which no sample to calibrate was scored, so that `clean_scores` serve."""
    aside = calibration_scores(ledger, detector) if isinstance(threshold, Mapping) else {}
    return model_thresholds(clean_scores, threshold, aside)


def on_uncalibrated(ledger: Ledger, lacking: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One warning for all detectors (-> models) whose thresholds come from the very inputs they are tried on."""
    names = [f"{detector} ({', '.join(models)})" for detector, models in lacking.items() if models]
    if not names:
        return ()
    n_aside = ledger.query("SELECT count(*) AS n FROM samples WHERE split = 'calibrate'")["n"][0].as_py()
    if not n_aside:
        remedy = "say `calibrate: 200`, or so, under `data`"
    elif any(is_imported(ledger, detector) for detector, models in lacking.items() if models):
        remedy = f"import the scores of those too ({counted(n_aside, 'sample')})"
    else:
        remedy = "run the study again with these detectors in it, and they score them"
    return (
        f"Of {'; '.join(names)} the threshold for a rate of false alarms was taken from the very inputs it is tried "
        f"on, as no sample to calibrate was scored: that rate looks better than it is; {remedy}.",
    )
