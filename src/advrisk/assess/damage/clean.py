"""Clean accuracy of models, and the share of clean inputs that they refuse to answer.

For a model that answers at random these are shares of queries: means over the judge's draws.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from advrisk.assess.damage.distances import Distances
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.mean_share import mean_share

# All samples of the evaluation split, even without an attack's verdict. A refused input has no class. `correct`
# and `refused` are shares of draws; ledgers without draws store the incorrect share if that was the criterion.
CLEAN_ROWS = """
    SELECT o.model, o.sample, o.outcome = 'rejected' AS is_refused,
           CASE WHEN o.draws IS NOT NULL THEN list_avg([(d = s.label)::DOUBLE for d in o.draws])
                WHEN o.criterion = 'label' AND o.outcome IN ('success', 'resisted') AND o.success_rate > 0
                     AND o.success_rate < 1 THEN 1 - o.success_rate::DOUBLE
                ELSE coalesce(o.prediction = s.label, false)::DOUBLE END AS correct,
           coalesce(list_avg([(d < 0)::DOUBLE for d in o.draws]), (o.outcome = 'rejected')::DOUBLE) AS refused
    FROM outcomes o JOIN samples s USING (sample)
    WHERE o.kind = 'clean' AND s.split = 'evaluate' AND s.label IS NOT NULL
      AND (o.prediction IS NOT NULL OR o.outcome = 'rejected')
"""
_CLEAN = f"""
    SELECT model, list(correct ORDER BY sample) AS correct, list(refused ORDER BY sample) AS refused
    FROM ({CLEAN_ROWS}) GROUP BY model ORDER BY model
"""
_REFUSING = "SELECT DISTINCT model::VARCHAR AS model FROM outcomes WHERE outcome = 'rejected' OR n_rejected > 0"


class CleanShares(NamedTuple):
    """Model -> share of clean inputs that it classifies correctly, and that it refuses to answer.

    A refused input is not correct. `rejection` is empty if no model refuses anything.
    """

    accuracy: dict[str, Estimate]
    rejection: dict[str, Estimate]


class CleanArrays(NamedTuple):
    """One model's clean answers, sample by sample; 0 where `answered` is false."""

    correct: NDArray[np.float64]
    refused: NDArray[np.float64]
    answered: NDArray[np.bool_]

    @classmethod
    def of(cls, n: int) -> "CleanArrays":
        """Arrays for n samples without an answer."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n, np.bool_))


def clean_shares(ledger: Ledger, *, level: float = 0.95) -> CleanShares:
    """Both shares for every model."""
    rows = ledger.query(_CLEAN).to_pylist()
    some_refuse = bool(len(ledger.query(_REFUSING)))

    def shares(name: str) -> dict[str, Estimate]:
        return {row["model"]: mean_share(np.array(row[name]), level=level) for row in rows}

    return CleanShares(shares("correct"), shares("refused") if some_refuse else {})


def correct_samples(ledger: Ledger, distances: Distances) -> dict[str, NDArray[np.float64]]:
    """Model -> 1 where it classifies a sample correctly; for a model that answers at random, the share of draws.

    Only models with clean answers on all of these samples.
    """
    arrays = clean_arrays(ledger, distances.samples)
    complete = {model for model, one in arrays.items() if one.answered.all()}
    return {model: arrays[model].correct for model in distances.by_model if model in complete}


def clean_arrays(ledger: Ledger, samples: Sequence[str]) -> dict[str, CleanArrays]:
    """The clean answers on these samples, of every model with any."""
    names = pa.array(samples, pa.string())

    def entered(pieces: Iterable[pa.RecordBatch]) -> dict[str, CleanArrays]:
        by_model: dict[str, CleanArrays] = {}
        for rows in pieces:
            index = pc.fill_null(pc.index_in(rows["sample"], names), -1).to_numpy()
            for model in pc.unique(rows["model"]).to_pylist():
                own = pc.equal(rows["model"], model).to_numpy(zero_copy_only=False) & (index >= 0)
                arrays = by_model.setdefault(model, CleanArrays.of(len(samples)))
                arrays.correct[index[own]] = rows["correct"].to_numpy(zero_copy_only=False)[own]
                arrays.refused[index[own]] = rows["refused"].to_numpy(zero_copy_only=False)[own]
                arrays.answered[index[own]] = True
        return by_model

    return ledger.reduce(CLEAN_ROWS, entered)


def on_rejection(rejection: dict[str, Estimate]) -> list[str]:
    """A note on the models that refuse clean inputs, if any do."""
    some = {model: share for model, share in rejection.items() if share.value > 0}
    if not some:
        return []
    shares = ", ".join(f"{model} {share.in_percent()}" for model, share in some.items())
    return [
        f"Clean inputs that are refused: {shares}. A refused input is neither correct nor incorrect, and not an "
        "attack's success; its loss is 0 except under the loss `rejected`."
    ]
