"""The inputs of Algorithm 1, read from the ledger: the nearest success of every sample and its clean input.

A detector scores the points that attacks kept, so sizes here are theirs (`d_…`), not those of the walk back (`near_…`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.assess.damage.distances import Distances
from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean
from advrisk.core.traits import DETECTOR
from advrisk.ledger import Ledger
from advrisk.ledger.known_detectors import read_known_detectors
from advrisk.risk.monte_carlo import Floats, Walk

# One row for each model and sample that some arm broke. Of equally near successes (up to rounding: an attack at an eps
# may stop a little off it) the least suspicious one counts, so that the arm's name does not decide; with equal scores,
# or without any, the nearest counts, then the first by name of the arm and by repeat.
# `n_unscored` counts all successes of the sample, near or not.
_NEAREST = """
    WITH broken AS (
        SELECT o.model, o.sample, o.arm, o.repeat, o.cell, o.outcome = 'success' AS attacked, s.score,
               CASE o.outcome WHEN 'success' THEN o.d_{norm} ELSE 0 END AS distance
        FROM outcomes o
        LEFT JOIN (SELECT cell, sample, score FROM scores WHERE detector = $detector) s
               ON s.cell = o.cell AND s.sample = o.sample AND o.outcome = 'success'
        WHERE o.arm IN (SELECT unnest($arms)) AND o.model IN (SELECT unnest($models))
          AND o.outcome IN ('already_wrong', 'success')
    )
    , least AS (
        SELECT model, sample, min(distance) AS distance, min(score) AS least_score,
               count(*) FILTER (attacked) - count(score) AS n_unscored
        FROM broken GROUP BY model, sample
    )
    SELECT b.model, b.sample, b.arm, b.attacked, l.distance, b.score, l.least_score, l.n_unscored
    FROM broken b JOIN least l ON l.model = b.model AND l.sample = b.sample
    WHERE b.distance <= l.distance * (1 + 1e-6)
    QUALIFY row_number() OVER (
        PARTITION BY b.model, b.sample ORDER BY b.attacked, b.score, b.distance, b.arm, b.repeat, b.cell) = 1
"""

_CLEAN = """
    SELECT o.model, o.sample, coalesce(o.prediction = m.label, false) AS correct, s.score
    FROM outcomes o
    JOIN samples m ON m.sample = o.sample
    LEFT JOIN (SELECT cell, sample, score FROM scores WHERE detector = $detector) s
           ON s.cell = o.cell AND s.sample = o.sample
    WHERE o.kind = 'clean' AND o.model IN (SELECT unnest($models))
"""

_KNOWING = f"""
    SELECT DISTINCT arm::VARCHAR AS arm FROM arms
    WHERE kind = 'attack' AND arm IN (SELECT unnest($arms)) AND params->>'{DETECTOR}' = $detector ORDER BY arm
"""

# Scores whose cell is the recipe of a clean arm are those of the calibration split.
_CALIBRATE = """
    SELECT a.model, list(s.score) AS scores
    FROM scores s
    JOIN arms a ON a.recipe = s.cell AND a.kind = 'clean' AND a.origin = 'study'
    WHERE s.detector = $detector
    GROUP BY a.model
"""


def walks(ledger: Ledger, distances: Distances, detector: str) -> dict[str, Walk]:
    """Model -> its walk over the samples of `distances`. Raises an error if a score is missing."""
    models = list(distances.by_model)
    parameters = {"detector": detector, "models": models}
    nearest = _by_sample(
        ledger, _NEAREST.format(norm=distances.norm), parameters | {"arms": list(distances.arms)}, distances
    )
    clean = _by_sample(ledger, _CLEAN, parameters, distances)
    walked = {model: _walk(nearest.get(model, {}), clean.get(model, {}), len(distances.samples)) for model in models}
    for model, walk in walked.items():
        measured = distances.by_model[model]  # may lie nearer than what the attack kept, which the detector scored
        if not np.array_equal(np.isinf(walk.size), np.isinf(measured)) or bool((walk.size < measured).any()):
            raise RiskError(f"the distances of {model} are not those of this ledger; compute them again from it")
    _refuse_unscored(walked, detector, ledger)
    return walked


def nearest_arms(ledger: Ledger, distances: Distances) -> dict[str, tuple[str, ...]]:
    """Model -> the arm of each sample's nearest success; "" where the clean input is wrong, or nothing succeeded."""
    models = list(distances.by_model)
    parameters = {"detector": "", "models": models, "arms": list(distances.arms)}
    rows = _by_sample(ledger, _NEAREST.format(norm=distances.norm), parameters, distances)
    return {model: _walk(rows.get(model, {}), {}, len(distances.samples)).arm for model in models}


def arms_that_know(ledger: Ledger, detector: str, arms: Sequence[str]) -> tuple[str, ...]:
    """The arms that were crafted to evade this detector (its full name)."""
    rows = ledger.query(_KNOWING, {"detector": detector, "arms": list(arms)})
    return tuple(str(name) for name in rows["arm"].to_pylist())


def calibration_scores(ledger: Ledger, detector: str) -> dict[str, Floats]:
    """Model -> the detector's scores of the calibration split, where they exist."""
    rows = ledger.query(_CALIBRATE, {"detector": detector}).to_pylist()
    return {row["model"]: np.array(row["scores"], dtype=np.float64) for row in rows}


def detectors_of(ledger: Ledger) -> list[str]:
    """Full names of the detectors with scores in a ledger, the run's own last.

    The others belong to an earlier study in the same folder, the most recent last.
    """
    rows = ledger.query("SELECT detector FROM all_scores GROUP BY detector ORDER BY max(filename), detector")
    stored = [str(name) for name in rows["detector"].to_pylist()]
    own = own_detectors(ledger)
    return [name for name in stored if name not in own] + [name for name in own if name in stored]


def own_detectors(ledger: Ledger) -> tuple[str, ...]:
    """The detectors of the run's study and its imports; all detectors with scores if the run did not record them."""
    recorded = read_known_detectors(ledger.path.parent)
    if recorded is not None:
        shown = {full: name for name, full in ledger.ids.items()}
        return tuple(shown.get(full, full) for full in recorded.all)
    rows = ledger.query("SELECT detector FROM all_scores GROUP BY detector ORDER BY max(filename), detector")
    return tuple(str(name) for name in rows["detector"].to_pylist())


def find_detector(ledger: Ledger, name: str) -> str:
    """The full name of a detector: `confidence` matches `confidence@22e228c9`.

    If several match, the run's own counts, or the one that scored last. The name of a part (`lid`) is enough if the
    run has one detector of that part (`lid,neighbours=10`).
    """
    scored = detectors_of(ledger)
    matches = [full for full in scored if name in (full, full.rpartition("@")[0])]
    if not matches:
        matches = [full for full in scored if full.rpartition("@")[0].partition(",")[0] == name]
        names = sorted({full.rpartition("@")[0] for full in matches})
        if len(names) > 1:
            raise RiskError(f"{name!r} may mean several detectors of this run: {'; '.join(names)}")
    if not matches:
        if not scored:
            raise RiskError("no detector has scored this run; name one under `detectors` in the study and run it again")
        names = sorted({full.rpartition("@")[0] for full in scored})
        raise RiskError(f"no detector called {name!r} has scored this run; {did_you_mean(name, names)}")
    return matches[-1]


def _by_sample(
    ledger: Ledger, sql: str, parameters: Mapping[str, Any], distances: Distances
) -> dict[str, dict[int, dict[str, Any]]]:
    """Model -> index of the sample -> row."""
    index = {name: number for number, name in enumerate(distances.samples)}
    rows = ledger.query(sql, parameters)
    rows = rows.filter(pc.is_in(rows["sample"], pa.array(distances.samples)))
    by_model: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_model.setdefault(row["model"], {})[index[row["sample"]]] = row
    return by_model


def _walk(nearest: Mapping[int, dict[str, Any]], clean: Mapping[int, dict[str, Any]], n: int) -> Walk:
    size = np.full(n, np.inf)
    score, least_score, clean_score = (np.full(n, np.nan) for _ in range(3))
    correct, arm = np.zeros(n, np.bool_), [""] * n
    for index, row in clean.items():
        correct[index] = row["correct"]
        clean_score[index] = np.nan if row["score"] is None else row["score"]
    for index, row in nearest.items():
        size[index] = row["distance"]
        score[index] = least_score[index] = clean_score[index]
        if row["attacked"]:
            score[index], arm[index] = np.nan if row["score"] is None else row["score"], row["arm"]
            least_score[index] = np.nan if row["n_unscored"] else row["least_score"]
        elif row["least_score"] is not None:  # a model that answers at random, wrong clean in some draws only
            least_score[index] = np.nan if row["n_unscored"] else min(clean_score[index], row["least_score"])
    return Walk(size, score, least_score, tuple(arm), clean_score, correct)


def what_to_score(ledger: Ledger, detector: str) -> str:
    """The remedy for missing scores of a detector; an imported one has no study to run again."""
    if is_imported(ledger, detector):
        folder = ledger.path.parent
        return (
            f"import its scores of all inputs in one file (`advrisk export {folder} to-score.npz --to-score` writes "
            "them), or name arms whose inputs it scored"
        )
    return (
        "finish the run with this detector in its study (the same command resumes it), or name arms whose inputs it "
        "scored"
    )


def is_imported(ledger: Ledger, detector: str) -> bool:
    """Whether the run records that a detector's scores came from a file."""
    recorded = read_known_detectors(ledger.path.parent)
    return recorded is not None and detector in recorded.imported


def _refuse_unscored(walked: Mapping[str, Walk], detector: str, ledger: Ledger) -> None:
    for model, walk in walked.items():
        missing = int((np.isnan(walk.clean_score) | (np.isfinite(walk.size) & np.isnan(walk.least_score))).sum())
        if missing:
            raise RiskError(
                f"{detector} has not scored {counted(missing, 'sample')} of {walk.size.size} of {model}; "
                f"{what_to_score(ledger, detector)}"
            )
