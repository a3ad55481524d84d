"""What damage a detector leaves, and what it learned from: sections of `studies.detection` that need no ROC."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from advrisk import Run
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.monte_carlo import monte_carlo_damage
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger.inputs import detector_state
from advrisk.risk.detection.groups import ADAPTIVE
from advrisk.risk.monte_carlo import MonteCarloDamage
from advrisk.run.detectors.ready import read_state
from studies.text import NOTHING, table, wrapped

FALSE_ALARMS = 0.05


def short(detector: str) -> str:
    """A detector's name without its digest and without the arms that it learned from."""
    return detector.rpartition("@")[0].partition(",arms=")[0]


def learned(folder: Path, model: str, detectors: Sequence[str]) -> list[str]:
    """How much each detector learned from, and how long that took."""
    rows = []
    for detector in detectors:
        path = detector_state(folder, detector, model)
        if path.is_file():
            _, note = read_state(path)
            attacks = note["n_adversarial"] if int(note["n_adversarial"]) else NOTHING
            rows.append([short(detector), note["n_clean"], attacks, f"{float(note['fit_s']):.0f} s"])
    sentence = "What the detectors that learn have learned from: images that are clean, and attacks that succeeded."
    return [sentence, *table(["detector", "clean", "attacks", "fitted in"], rows)] if rows else []


def damage(run: Run, model: str, detectors: Sequence[str]) -> list[str]:
    """P^dam with each detector in front of the model, at a threshold that few clean inputs pass."""
    arms = _arms(run)
    found = {detector: _damage(run, detector, arms) for detector in detectors}
    knowing = {detector: adaptive_arms(run, detector) for detector in detectors}
    rows = [
        [short(detector), *map(_text, (one.false_alarms[model], one.nearest[model], one.estimates[model]))]
        for detector, one in found.items()
    ]
    head = ["detector", "false alarms", "nearest", "least suspicious"]
    sentence = (
        f"Damage with a detector in front (threshold: {FALSE_ALARMS:.0%} false alarms on the images set aside to "
        f"calibrate), sizes in linf, all arms that have a norm. Without any detector it is "
        f"{found[detectors[0]].success[model]}. `nearest`: the attacker takes the nearest success; `least suspicious`: "
        "of all arms the success with the least score"
    )
    if any(knowing.values()):
        for row, (detector, more) in zip(rows, knowing.items(), strict=True):
            row.append(_text(_damage(run, detector, [*arms, *more]).estimates[model] if more else None))
        head, sentence = [*head, "knowing"], f"{sentence}; `knowing`: the same with the arms that know this detector"
    return [*wrapped([f"{sentence}."]), *table(head, rows)]


def _damage(run: Run, detector: str, arms: Sequence[str]) -> MonteCarloDamage:
    distances = smallest_distances(run.ledger, norm="linf", arms=list(arms))
    rng = np.random.default_rng(0)
    return monte_carlo_damage(run.ledger, distances, detector, threshold={"false_alarms": FALSE_ALARMS}, rng=rng)


def _text(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else str(estimate)


def _arms(run: Run) -> list[str]:
    """Attacks that have a norm and know no detector."""
    rows = run.query(
        "SELECT DISTINCT arm FROM arms WHERE kind = 'attack' AND origin = 'study' AND norm IS NOT NULL "
        "AND family <> $family ORDER BY arm",
        {"family": ADAPTIVE},
    )
    found: list[str] = rows["arm"].to_pylist()
    if not found:
        raise RiskError(f"{run.folder}: holds no attack with a norm, so there is no damage to speak of")
    return found


def adaptive_arms(run: Run, detector: str) -> list[str]:
    """The arms that know this detector."""
    rows = run.query(
        "SELECT DISTINCT arm FROM arms WHERE family = $family AND origin = 'study' "
        "AND json_extract_string(params, '$.detector') = $detector ORDER BY arm",
        {"family": ADAPTIVE, "detector": detector},
    )
    arms: list[str] = rows["arm"].to_pylist()
    return arms
