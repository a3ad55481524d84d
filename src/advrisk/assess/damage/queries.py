"""The points that attacks kept against models that answer at random, read from the ledger.

`risk.queries` computes what a query meets there.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.ledger import Ledger
from advrisk.risk.queries import Floats, QueryPoints

_RANDOM = "SELECT model FROM models WHERE random ORDER BY model"
_HIT = """(d >= 0 AND CASE o.criterion WHEN 'prediction' THEN d <> o.clean_prediction
    WHEN 'target' THEN d = o.target AND o.target <> s.label ELSE d <> s.label END)"""
_EARLY, _LATE = "o.draws[1:len(o.draws) // 2]", "o.draws[len(o.draws) // 2 + 1:]"
# Ledgers without draws store the share of them that met the criterion.
_ROWS = f"""
    SELECT o.sample::VARCHAR AS sample, concat_ws(' ', o.arm, coalesce(o.repeat, 0)) AS point,
           CASE o.kind WHEN 'clean' THEN 0 ELSE o.d_{{norm}} END AS distance, len(o.draws) AS n_draws,
           coalesce(list_avg([{_HIT}::DOUBLE for d in {_EARLY}]), o.success_rate) AS hit_early,
           coalesce(list_avg([{_HIT}::DOUBLE for d in {_LATE}]), o.success_rate) AS hit_late,
           coalesce(list_avg([(d <> s.label)::DOUBLE for d in {_EARLY}]), o.success_rate) AS wrong_early,
           coalesce(list_avg([(d <> s.label)::DOUBLE for d in {_LATE}]), o.success_rate) AS wrong_late
    FROM outcomes o JOIN samples s USING (sample)
    WHERE o.model = $model AND (o.kind = 'clean' OR o.arm IN (SELECT unnest($arms)))
      AND o.outcome IN ('success', 'resisted', 'rejected') ORDER BY ALL
"""
_ATTACKS = """
    SELECT DISTINCT eps, keep FROM arms
    WHERE model = $model AND kind = 'attack' AND norm = $norm AND arm IN (SELECT unnest($arms)) ORDER BY ALL
"""


def read_queries(ledger: Ledger, *, norm: str, arms: Sequence[str], samples: Sequence[str]) -> dict[str, QueryPoints]:
    """Model -> its kept points, in the order of these samples, for each model that answers at random."""
    models = ledger.query(_RANDOM)["model"].to_pylist()
    return {str(model): _points(ledger, str(model), norm, arms, samples) for model in models}


def on_queries(models: Iterable[str]) -> list[str]:
    """A note on what the numbers of models that answer at random mean."""
    named = ", ".join(models)
    if not named:
        return []
    return [
        f"Answers at random: {named}. Clean accuracy, robust accuracy and attack success rate count queries, each "
        "one draw; distances are those of points where most draws are a success."
    ]


def _points(ledger: Ledger, model: str, norm: str, arms: Sequence[str], samples: Sequence[str]) -> QueryPoints:
    table = ledger.query(_ROWS.format(norm=norm), {"model": model, "arms": list(arms)})
    table = table.filter(pc.is_in(table["sample"], pa.array(samples, pa.string())))
    table = table.filter(pc.is_valid(table["hit_early"]))
    names = pc.unique(table["point"])
    where = (
        pc.index_in(table["point"], names).to_numpy().astype(np.int64),
        pc.index_in(table["sample"], pa.array(samples, pa.string())).to_numpy().astype(np.int64),
    )
    shape = max(len(names), 1), len(samples)

    def column(name: str, otherwise: float) -> Floats:
        values = np.full(shape, otherwise)
        values[where] = pc.fill_null(table[name].cast(pa.float64()), otherwise).to_numpy()
        return values

    n_draws = pc.max(table["n_draws"]).as_py() or 2
    attacks = ledger.query(_ATTACKS, {"model": model, "norm": norm, "arms": list(arms)}).to_pylist()
    return QueryPoints(
        model=model,
        distance=column("distance", np.inf),
        hit=(column("hit_early", 0.0), column("hit_late", 0.0)),
        wrong=(column("wrong_early", 0.0), column("wrong_late", 0.0)),
        early_share=(n_draws // 2) / n_draws,
        attacks=tuple((row["eps"], row["keep"]) for row in attacks),
    )
