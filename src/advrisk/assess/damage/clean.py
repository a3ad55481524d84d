"""What models make of clean inputs: how many they have right, and how many they refuse to answer.

Of a model that answers at random these are shares of queries: means over the judge's draws.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advrisk.assess.damage.distances import Distances
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.mean_share import mean_share

# Of all samples to be evaluated, also those that an attack gave no verdict on. What is refused says no class. `correct`
# and `refused` are shares of draws; ledgers without draws know the share that was wrong, where that was the criterion.
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
    """Model -> share of clean inputs that it answers rightly, and that it refuses to answer.

    A refused input is not answered rightly. `rejection` is of no model, if none of them ever refuses anything.
    """

    accuracy: dict[str, Estimate]
    rejection: dict[str, Estimate]


def clean_shares(ledger: Ledger, *, level: float = 0.95) -> CleanShares:
    """Both shares of every model."""
    rows = ledger.query(_CLEAN).to_pylist()
    some_refuse = bool(len(ledger.query(_REFUSING)))

    def shares(name: str) -> dict[str, Estimate]:
        return {row["model"]: mean_share(np.array(row[name]), level=level) for row in rows}

    return CleanShares(shares("correct"), shares("refused") if some_refuse else {})


def correct_samples(ledger: Ledger, distances: Distances) -> dict[str, NDArray[np.float64]]:
    """Model -> 1 where it answers a sample correctly, of a model that answers at random the share of draws.

    Only models whose clean answers are known on all of these samples.
    """
    place = {name: number for number, name in enumerate(distances.samples)}
    correct = {model: np.zeros(len(place)) for model in distances.by_model}
    known = dict.fromkeys(correct, 0)
    for row in ledger.query(CLEAN_ROWS).to_pylist():
        if row["model"] in correct and row["sample"] in place:
            correct[row["model"]][place[row["sample"]]] = row["correct"]
            known[row["model"]] += 1
    return {model: flags for model, flags in correct.items() if known[model] == len(place)}


def on_rejection(rejection: dict[str, Estimate]) -> list[str]:
    """In words, of the models that refuse clean inputs, if any do: what is refused costs nothing, and is no use."""
    some = {model: share for model, share in rejection.items() if share.value > 0}
    if not some:
        return []
    shares = ", ".join(f"{model} {share.in_percent()}" for model, share in some.items())
    return [
        f"Clean inputs that are refused: {shares}. A refused input is neither right nor wrong, and no attack's "
        "success; its loss is 0 but under the loss `rejected`."
    ]
