"""The identity of a certified model: its classes on the calibration samples, as one digest.

Classes, and not rounded logits: wherever a grid lies, other hardware puts some logit of a thousand on its other side.
A class changes only where two were nearly equal. Such near ties are left out, and the document says which.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advrisk.core.digest import digest
from advrisk.core.flags import BATCH_DEPENDENT
from advrisk.ledger import Ledger

NEAR_TIE = 0.1  # of the median spread of logits: half precision and int8 move each of the two by some hundredths
_ANSWERS = """
    SELECT sample::VARCHAR AS sample, coalesce(clean_prediction, prediction) AS class, logits
    FROM outcomes LEFT JOIN outputs USING (cell, sample)
    WHERE model = $model AND kind = 'clean' AND outcome NOT IN ('error', 'timeout') AND coalesce(repeat, 0) = 0
    AND sample IN (SELECT sample FROM samples WHERE split = 'calibrate')
"""
_UNSTEADY = f"""
    SELECT 1 FROM models WHERE model = $model AND random UNION ALL
    SELECT 1 FROM cells WHERE model = $model AND list_contains(flags, '{BATCH_DEPENDENT}') LIMIT 1
"""


@dataclass(frozen=True)
class AnswersDigest:
    """The classes of a model's clean answers: a digest, and the samples that it leaves out.

    `left_out` are indices among all calibration samples, in the order of their ids, from 0.
    """

    n: int
    left_out: tuple[int, ...]
    digest: str


def recorded_answers(ledger: Ledger, model: str) -> AnswersDigest | None:
    """The identity of a model in a run; None if the same model may answer differently when queried again."""
    if ledger.query(_UNSTEADY, {"model": model}).num_rows:
        return None
    rows = {row["sample"]: row for row in ledger.query(_ANSWERS, {"model": model}).to_pylist()}
    classes = {name: row["class"] for name, row in rows.items() if row["class"] is not None}
    logits = {name: np.array(row["logits"]) for name, row in rows.items() if row["logits"]}
    limit = NEAR_TIE * float(np.median([np.ptp(own) for own in logits.values()])) if logits else 0.0
    close = {name for name, own in logits.items() if len(own) > 1 and np.diff(np.sort(own)[-2:])[0] <= limit}
    samples = ledger.query("SELECT sample::VARCHAR AS sample FROM samples WHERE split = 'calibrate'")["sample"]
    ordered = sorted(samples.to_pylist())
    left_out = tuple(place for place, name in enumerate(ordered) if name not in classes or name in close)
    if len(left_out) == len(ordered):
        return None
    return answers_of(dict.fromkeys(ordered, -1) | classes, left_out)


def answers_of(classes: Mapping[str, int], left_out: tuple[int, ...]) -> AnswersDigest:
    """The digest of classes by sample, without those at the indices `left_out`."""
    omitted = set(left_out)
    kept = [[name, classes[name]] for place, name in enumerate(sorted(classes)) if place not in omitted]
    return AnswersDigest(len(kept), left_out, digest(kept))
