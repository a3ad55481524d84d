"""What a query meets: how often a model that answers at random errs at the points that attacks kept.

Whether an attack succeeded against such a model is decided by most of the judge's draws. In use it answers each query
by one draw: its robust accuracy is the share of *queries* that it answers correctly. At each sample the attacker
takes the worst point within eps, the clean input being one of them; which one that is, and how often it errs, come from
different draws (`indicators.draws`).

The walk back to the clean input says where most draws call a point a success, not how often a query errs there. So a
size that no attack had for its eps is refused, unless an attack looked for the smallest change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.numbers import size_text
from advrisk.ledger import Ledger
from advrisk.risk.indicators.draws import worst
from advrisk.risk.tried import Attack, was_tried

Floats = NDArray[np.float64]

_RANDOM = "SELECT model FROM models WHERE random ORDER BY model"
_HIT = """(d >= 0 AND CASE o.criterion WHEN 'prediction' THEN d <> o.clean_prediction
    WHEN 'target' THEN d = o.target AND o.target <> s.label ELSE d <> s.label END)"""
_EARLY, _LATE = "o.draws[1:len(o.draws) // 2]", "o.draws[len(o.draws) // 2 + 1:]"
# Rows of ledgers without draws know the share of them that met the criterion.
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


@dataclass(frozen=True, eq=False)
class QueryPoints:
    """The points that a random model was asked about, (points, samples): how far, and the shares of draws that err.

    `hit` is what the criterion of success says, `wrong` what the label does, a refused query being no correct answer.
    Each is a pair: over the first part of the draws, and over the rest. `distance` is infinite where there is no point.
    `attacks` are the eps and `keep` of each attack.
    """

    model: str
    distance: Floats
    hit: tuple[Floats, Floats]
    wrong: tuple[Floats, Floats]
    early_share: float
    attacks: tuple[Attack, ...]

    def measured(self, eps: float) -> bool:
        """Whether an attack was made at this size, or one that looked for the smallest change up to it."""
        return was_tried(eps, self.attacks)

    def broken(self, eps: float) -> Floats:
        """The share of queries at each sample that an attacker within eps makes succeed."""
        return self._worst(self.hit, eps)

    def correct(self, eps: float) -> Floats:
        """The share of queries at each sample that are answered correctly under such an attacker."""
        return np.asarray(1 - self._worst(self.wrong, eps))

    def _worst(self, parts: tuple[Floats, Floats], eps: float) -> Floats:
        if not self.measured(eps):
            raise RiskError(
                f"{self.model} answers at random, and no attack had an eps of {size_text(eps)}: how often a query errs "
                "there is not measured; add an attack with that eps"
            )
        inside = self.distance <= eps
        early, late = (np.where(inside, part, -1.0) for part in parts)
        found = np.where(inside.any(axis=0), worst(early, late, self.early_share), 0.0)
        return np.asarray(np.clip(found, 0.0, 1.0))


def read_queries(ledger: Ledger, *, norm: str, arms: Sequence[str], samples: Sequence[str]) -> dict[str, QueryPoints]:
    """The points of every model that answers at random, in the order of these samples."""
    models = ledger.query(_RANDOM)["model"].to_pylist()
    return {str(model): _points(ledger, str(model), norm, arms, samples) for model in models}


def on_queries(models: Iterable[str]) -> list[str]:
    """In words, what numbers about models that answer at random mean."""
    named = ", ".join(models)
    if not named:
        return []
    return [
        f"Answers at random: {named}. Clean accuracy, robust accuracy and attack success rate count queries, each "
        "one draw; distances are of points that most draws call a success."
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
