"""The robustness numbers that risks are compared with: mean minimal distance and adversarial risk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.damage import PerturbationSize, mean_perturbation_size
from advrisk.risk.distances import Distances, smallest_distances
from advrisk.risk.proportion import proportion
from advrisk.study import Norm


@dataclass(frozen=True)
class Robustness:
    """One model and one norm; None where no attack succeeded, or no arm has an eps."""

    model: str
    norm: str
    mean_distance: PerturbationSize | None  # rho_1: over samples that were right, and were broken
    eps: float | None  # the largest that an arm was allowed
    adversarial_risk: Estimate | None  # rho_2: share wrong under the strongest attack within eps

    def as_dict(self) -> dict[str, Any]:
        size = self.mean_distance
        counts = {"n_already_wrong": size.n_already_wrong, "n_resisted": size.n_resisted} if size else {}
        return {
            **vars(self),
            "mean_distance": size.estimate.as_dict() | counts if size else None,
            "adversarial_risk": self.adversarial_risk.as_dict() if self.adversarial_risk else None,
        }


def robustness(
    ledger: Ledger, *, models: Sequence[str] | None = None, level: float = 0.95
) -> tuple[tuple[Robustness, ...], tuple[str, ...]]:
    """For every model and every norm that the study's attacks have; and why something cannot be said."""
    arms = ledger.query(
        "SELECT DISTINCT norm, arm, eps FROM arms WHERE kind = 'attack' AND norm IS NOT NULL AND origin IN "
        "(SELECT CASE WHEN count(*) > 0 THEN 'study' ELSE 'import' END FROM arms WHERE origin = 'study') "
        "ORDER BY norm, arm"
    ).to_pylist()
    found: list[Robustness] = []
    notes: list[str] = []
    for norm in dict.fromkeys(row["norm"] for row in arms):
        own = [row for row in arms if row["norm"] == norm]
        sizes = [row["eps"] for row in own if row["eps"]]
        try:
            distances = smallest_distances(ledger, norm=norm, arms=[row["arm"] for row in own])
        except RiskError as error:
            notes.append(f"Distances in {norm} are left out: {error}.")
            continue
        found += [
            _robustness(distances, model, norm, max(sizes, default=None), level)
            for model in distances.by_model
            if models is None or model in models
        ]
    return tuple(found), tuple(notes)


def _robustness(distances: Distances, model: str, norm: Norm, eps: float | None, level: float) -> Robustness:
    own = distances.by_model[model]
    broken = (own > 0) & (own < np.inf)
    return Robustness(
        model=model,
        norm=norm,
        mean_distance=mean_perturbation_size(own, level=level) if broken.any() else None,
        eps=eps,
        adversarial_risk=None if eps is None else proportion(int((own <= eps).sum()), own.size, level=level),
    )
