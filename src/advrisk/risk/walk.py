"""What Algorithm 1 shows a detector, read from the ledger: the nearest success of every sample, and its clean input."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean
from advrisk.ledger import Ledger
from advrisk.ledger.known_detectors import read_known_detectors
from advrisk.risk.distances import Distances

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# One row for each model and sample that some arm broke. Equal distances: by name of the arm, then by repeat.
_NEAREST = """
    WITH nearest AS (
        SELECT o.model, o.sample, o.arm, o.cell, o.outcome = 'success' AS attacked,
               CASE outcome WHEN 'success' THEN d_{norm} ELSE 0 END AS distance
        FROM outcomes o
        WHERE o.arm IN (SELECT unnest($arms)) AND o.model IN (SELECT unnest($models))
          AND (outcome = 'already_wrong' OR outcome = 'success' AND d_{norm} IS NOT NULL)
        QUALIFY row_number() OVER (
            PARTITION BY o.model, o.sample ORDER BY distance, attacked, o.arm, o.repeat, o.cell) = 1
    )
    , scored AS (SELECT cell, sample, score FROM scores WHERE detector = $detector)
    , least AS (
        SELECT o.model, o.sample, min(s.score) AS least_score
        FROM outcomes o JOIN scored s ON s.cell = o.cell AND s.sample = o.sample
        WHERE o.arm IN (SELECT unnest($arms)) AND o.model IN (SELECT unnest($models)) AND o.outcome = 'success'
        GROUP BY ALL
    )
    SELECT n.model, n.sample, n.arm, n.attacked, n.distance, s.score, l.least_score
    FROM nearest n
    LEFT JOIN scored s ON s.cell = n.cell AND s.sample = n.sample
    LEFT JOIN least l ON l.model = n.model AND l.sample = n.sample
"""

_CLEAN = """
    SELECT o.model, o.sample, coalesce(o.prediction = m.label, false) AS correct, s.score
    FROM outcomes o
    JOIN samples m ON m.sample = o.sample
    LEFT JOIN (SELECT cell, sample, score FROM scores WHERE detector = $detector) s
           ON s.cell = o.cell AND s.sample = o.sample
    WHERE o.kind = 'clean' AND o.model IN (SELECT unnest($models))
"""

# Under the recipe of a clean arm stand the samples to calibrate, and no others.
_CALIBRATE = """
    SELECT a.model, list(s.score) AS scores
    FROM scores s
    JOIN arms a ON a.recipe = s.cell AND a.kind = 'clean' AND a.origin = 'study'
    WHERE s.detector = $detector
    GROUP BY a.model
"""


@dataclass(frozen=True, eq=False)
class Walk:
    """For one model, sample by sample: what its attacker arrives at, and what the detector says of it."""

    size: Floats  # of the nearest success; 0 where the clean input is wrong already, inf where no arm succeeded
    score: Floats  # of what is shown: the nearest success, or the clean input if that is wrong; nan where nothing is
    least_score: Floats  # the least of all successes of the arms: what looks most innocent; nan where nothing is shown
    arm: tuple[str, ...]  # that made it; "" where the clean input is shown, or nothing
    clean_score: Floats
    correct: Flags  # the clean input is classified as its label says


def walks(ledger: Ledger, distances: Distances, detector: str) -> dict[str, Walk]:
    """Model -> its walk over the samples of `distances`. A score that is missing is refused, never left out."""
    models = list(distances.by_model)
    given = {"detector": detector, "models": models}
    nearest = _by_place(ledger, _NEAREST.format(norm=distances.norm), given | {"arms": list(distances.arms)}, distances)
    clean = _by_place(ledger, _CLEAN, given, distances)
    found = {model: _walk(nearest.get(model, {}), clean.get(model, {}), len(distances.samples)) for model in models}
    for model, walk in found.items():
        if not np.array_equal(walk.size, distances.by_model[model]):
            raise RiskError(f"the distances of {model} are not those of this ledger; compute them again from it")
    _refuse_unscored(found, detector)
    return found


def nearest_arms(ledger: Ledger, distances: Distances) -> dict[str, tuple[str, ...]]:
    """Model -> the arm of each sample's nearest success; "" where the clean input is wrong, or nothing succeeded."""
    models = list(distances.by_model)
    given = {"detector": "", "models": models, "arms": list(distances.arms)}
    rows = _by_place(ledger, _NEAREST.format(norm=distances.norm), given, distances)
    return {model: _walk(rows.get(model, {}), {}, len(distances.samples)).arm for model in models}


def calibration_scores(ledger: Ledger, detector: str) -> dict[str, Floats]:
    """Model -> the detector's scores of the samples set aside to calibrate, where they were scored."""
    rows = ledger.query(_CALIBRATE, {"detector": detector}).to_pylist()
    return {row["model"]: np.array(row["scores"], dtype=np.float64) for row in rows}


def detectors_of(ledger: Ledger) -> list[str]:
    """The detectors whose scores a ledger holds: full names with their digests, the run's own at the end.

    Others are there from an earlier study in the same folder; those that scored last come later.
    """
    rows = ledger.query("SELECT detector FROM all_scores GROUP BY detector ORDER BY max(filename), detector")
    held = [str(name) for name in rows["detector"].to_pylist()]
    own = own_detectors(ledger)
    return [name for name in held if name not in own] + [name for name in own if name in held]


def own_detectors(ledger: Ledger) -> tuple[str, ...]:
    """The detectors of the run's study and its imports; all that scored it, where nobody wrote them down."""
    known = read_known_detectors(ledger.path.parent)
    if known is not None:
        return known.all
    rows = ledger.query("SELECT detector FROM all_scores GROUP BY detector ORDER BY max(filename), detector")
    return tuple(str(name) for name in rows["detector"].to_pylist())


def find_detector(ledger: Ledger, name: str) -> str:
    """The full name of a detector: `confidence` is found as `confidence@22e228c9`.

    If several have that name, the run's own counts, or the one that scored last. The name of a part (`lid`) will do
    where only one detector is made of it (`lid,neighbours=10`).
    """
    known = detectors_of(ledger)
    found = [full for full in known if name in (full, full.rpartition("@")[0])]
    if not found:
        found = [full for full in known if full.rpartition("@")[0].partition(",")[0] == name]
        names = sorted({full.rpartition("@")[0] for full in found})
        if len(names) > 1:
            raise RiskError(f"{name!r} may mean several detectors of this run: {'; '.join(names)}")
    if not found:
        if not known:
            raise RiskError("no detector has scored this run; name one under `detectors` in the study and run it again")
        names = sorted({full.rpartition("@")[0] for full in known})
        raise RiskError(f"no detector called {name!r} has scored this run; {did_you_mean(name, names)}")
    return found[-1]


def _by_place(
    ledger: Ledger, sql: str, given: Mapping[str, Any], distances: Distances
) -> dict[str, dict[int, dict[str, Any]]]:
    """Model -> place of the sample -> row."""
    place = {name: number for number, name in enumerate(distances.samples)}
    rows = ledger.query(sql, given)
    rows = rows.filter(pc.is_in(rows["sample"], pa.array(distances.samples)))
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["model"], {})[place[row["sample"]]] = row
    return found


def _walk(nearest: Mapping[int, dict[str, Any]], clean: Mapping[int, dict[str, Any]], n: int) -> Walk:
    size = np.full(n, np.inf)
    score, least_score, clean_score = (np.full(n, np.nan) for _ in range(3))
    correct, arm = np.zeros(n, np.bool_), [""] * n
    for place, row in clean.items():
        correct[place] = row["correct"]
        clean_score[place] = np.nan if row["score"] is None else row["score"]
    for place, row in nearest.items():
        size[place] = row["distance"]
        score[place] = least_score[place] = clean_score[place]
        if row["attacked"]:
            score[place], arm[place] = np.nan if row["score"] is None else row["score"], row["arm"]
            least_score[place] = np.nan if row["least_score"] is None else row["least_score"]
    return Walk(size, score, least_score, tuple(arm), clean_score, correct)


def _refuse_unscored(found: Mapping[str, Walk], detector: str) -> None:
    for model, walk in found.items():
        missing = int((np.isnan(walk.clean_score) | (np.isfinite(walk.size) & np.isnan(walk.score))).sum())
        if missing:
            raise RiskError(
                f"{detector} has not scored {counted(missing, 'sample')} of {walk.size.size} of {model}; finish the "
                "run with this detector in its study (the same command goes on), or name arms whose inputs it scored"
            )
