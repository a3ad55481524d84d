"""The robustness numbers that risks are compared with, of every model and norm of a run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.assess.damage.distances import Distances, smallest_distances
from advrisk.assess.damage.queries import read_queries
from advrisk.core.errors import RiskError
from advrisk.core.names import matches
from advrisk.ledger import Ledger
from advrisk.risk.indicators.robustness import Robustness, model_robustness

_WRONG = """
    SELECT o.model::VARCHAR AS model, o.sample::VARCHAR AS sample FROM outcomes o JOIN samples s USING (sample)
    WHERE o.kind = 'clean' AND o.prediction <> s.label AND o.criterion = 'prediction'
"""


def robustness(
    ledger: Ledger, *, models: Sequence[str] | None = None, arms: Sequence[str] | None = None, level: float = 0.95
) -> tuple[tuple[Robustness, ...], tuple[str, ...]]:
    """For every model and every norm that the attacks have; and why something cannot be said.

    `arms` are names or patterns; by default the attacks of the study. There is a mean distance, that of the
    nearest successes, only where some attack looks for the smallest change (`keep: smallest`, or no eps): others go as
    far as they may. Whatever success was judged by, a sample that is wrong when clean is at distance 0.
    """
    rows = _attacks(ledger, arms)
    found: list[Robustness] = []
    notes: list[str] = []
    for norm in dict.fromkeys(row["norm"] for row in rows):
        own = [row for row in rows if row["norm"] == norm]
        sized = any(row["keep"] == "smallest" or not row["eps"] for row in own)
        eps = max((row["eps"] for row in own if row["eps"]), default=None)
        try:
            distances = smallest_distances(ledger, norm=norm, arms=[row["arm"] for row in own])
        except RiskError as error:
            notes.append(f"Distances in {norm} are left out: {error}.")
            continue
        if not sized:
            notes.append(
                f"There is no mean distance in {norm}: all attacks have an eps, none looks for the smallest change; "
                "one without eps does, or one with `keep: smallest`."
            )
        queries = read_queries(ledger, norm=norm, arms=distances.arms, samples=distances.samples)
        to_wrong = distances_to_wrong(ledger, distances)
        found += [
            model_robustness(model, norm, to_wrong[model], eps, level, queries.get(model), sized=sized)
            for model in distances.by_model
            if models is None or model in models
        ]
    return tuple(found), tuple(notes)


def _attacks(ledger: Ledger, patterns: Sequence[str] | None) -> list[dict[str, Any]]:
    """Attacks with a norm that are asked about, each once."""
    rows: list[dict[str, Any]] = ledger.query(
        "SELECT DISTINCT norm, arm, eps, keep, origin FROM arms WHERE kind = 'attack' AND norm IS NOT NULL "
        "AND origin IN ('study', 'import') ORDER BY ALL"
    ).to_pylist()
    if patterns is not None:
        return [row for row in rows if matches(row["arm"], patterns)]
    own = "study" if ledger.query("SELECT 1 FROM arms WHERE origin = 'study' LIMIT 1").num_rows else "import"
    return [row for row in rows if row["origin"] == own]


def distances_to_wrong(ledger: Ledger, distances: Distances) -> dict[str, NDArray[np.float64]]:
    """Model -> how far each sample is from being misread: 0 where it is when clean, whatever success was judged by."""
    wrong: dict[str, set[str]] = {}
    for row in ledger.query(_WRONG).to_pylist():
        wrong.setdefault(row["model"], set()).add(row["sample"])
    return {
        model: np.where([name in wrong.get(model, ()) for name in distances.samples], 0.0, own)
        for model, own in distances.by_model.items()
    }
