"""The question of damage, answered from a ledger: which model to ship, and how sure that is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.seeds import generator
from advrisk.ledger import Ledger
from advrisk.risk.damage import (
    DamageComparison,
    PerturbationSize,
    detector_free_damage,
    mean_perturbation_size,
    minimal_perturbation_size,
)
from advrisk.risk.distances import Distances, smallest_distances, surrogates
from advrisk.risk.proportion import proportion
from advrisk.study import DamageSpec

LEAST = "least damage"  # the verdict on the model to ship


@dataclass(frozen=True)
class ModelDamage:
    """What is known of one model; sizes are None where no attack succeeded on a correctly classified sample."""

    model: str
    clean_accuracy: Estimate | None  # None where an imported run holds no clean rows
    success_ratio: Mapping[float, Estimate]  # eps -> share of samples broken within it
    relative_damage: Estimate | None  # None for a single model: the number is relative
    clean_error_part: float | None
    probability_best: float | None
    minimal_size: PerturbationSize | None
    mean_size: PerturbationSize | None
    verdict: str


@dataclass(frozen=True)
class DamageAssessment:
    """Models compared on the same samples, by the smallest perturbation any arm needed."""

    distances: Distances
    targeted: bool
    thresholds: tuple[float, ...]
    models: tuple[ModelDamage, ...]  # least damage first
    comparison: DamageComparison | None
    crafted_on: tuple[str, ...] = ()  # compared models that transfer arms were crafted on

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Relative damage by model."""
        if self.comparison is None:
            raise RiskError("relative damage compares models, and this run holds one; add another to the study")
        return self.comparison.estimates

    @property
    def decided(self) -> bool:
        """Whether the evidence names one model."""
        return self.comparison is not None and self.models[0].verdict == LEAST

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "norm": self.distances.norm,
            "targeted": self.targeted,
            "n_samples": len(self.distances.samples),
            "n_unfinished": self.distances.n_unfinished,
            "n_without_verdict": self.distances.n_without_verdict,
            "arms": list(self.distances.arms),
            "decided": self.decided,
            "crafted_on": list(self.crafted_on),
            "models": [_model_dict(row) for row in self.models],
            "order_changes": [vars(change) for change in self.comparison.order_changes] if self.comparison else [],
            "ties": [list(pair) for pair in self.comparison.ties] if self.comparison else [],
        }


def assess_damage(ledger: Ledger, question: DamageSpec, *, seed: int) -> DamageAssessment:
    """Answer `assess: damage` from a run's ledger."""
    distances = smallest_distances(ledger, norm=question.norm, arms=question.arms)
    thresholds = tuple(question.thresholds or _usual_thresholds(ledger, distances))
    comparison = None
    if len(distances.by_model) > 1:
        comparison = detector_free_damage(
            distances.by_model,
            level=question.level,
            resamples=question.resamples,
            rng=generator("damage", seed),
        )
    accuracy = _clean_accuracy(ledger, question.level)
    rows = [
        ModelDamage(
            model=model,
            clean_accuracy=accuracy.get(model),
            success_ratio={eps: _ratio(found, eps, question.level) for eps in thresholds},
            relative_damage=comparison.estimates[model] if comparison else None,
            clean_error_part=comparison.clean_error[model] if comparison else None,
            probability_best=comparison.probability_best[model] if comparison else None,
            minimal_size=minimal_perturbation_size(found, level=question.level) if _has_sizes(found) else None,
            mean_size=mean_perturbation_size(found, level=question.level) if _has_sizes(found) else None,
            verdict=_verdict(model, comparison, distances),
        )
        for model, found in distances.by_model.items()
    ]
    rows.sort(key=lambda row: row.relative_damage.value if row.relative_damage else 0.0)
    crafted_on = {surrogate for arm, surrogate in surrogates(ledger).items() if arm in distances.arms}
    crafted_on &= distances.by_model.keys() if comparison else set()
    return DamageAssessment(
        distances, _targeted(ledger), thresholds, tuple(rows), comparison, crafted_on=tuple(sorted(crafted_on))
    )


def _verdict(model: str, comparison: DamageComparison | None, distances: Distances) -> str:
    """`least damage`, `more damage than …`, or `undecided` with the reason."""
    if comparison is None:
        return "no other model to compare with"
    if distances.too_few:
        return f"undecided: {distances.n_samples - comparison.n} of {distances.n_samples} samples have no verdict"
    others = [other for other in comparison.models if other != model]
    alike = [other for other in others if comparison.undecided(model, other)]
    lower = [other for other in others if other not in alike and comparison.difference(model, other).value > 0]
    if lower:
        return f"more damage than {', '.join(sorted(lower, key=lambda other: comparison.estimates[other].value))}"
    return f"undecided against {', '.join(alike)}" if alike else LEAST


def _targeted(ledger: Ledger) -> bool:
    found = ledger.query("SELECT 1 FROM outcomes WHERE criterion = 'target' LIMIT 1")
    return len(found) > 0


def _ratio(found: Any, eps: float, level: float) -> Estimate:
    return proportion(int((found <= eps).sum()), len(found), level=level)


def _has_sizes(found: Any) -> bool:
    return bool(((found > 0) & (found < np.inf)).any())


def _usual_thresholds(ledger: Ledger, distances: Distances) -> list[float]:
    """The smallest and the largest eps the arms of this norm were allowed."""
    sizes = ledger.query(
        "SELECT DISTINCT eps FROM arms WHERE norm = $norm AND list_contains($arms, arm) AND eps > 0 ORDER BY eps",
        {"norm": distances.norm, "arms": list(distances.arms)},
    )["eps"].to_pylist()
    return sorted({sizes[0], sizes[-1]}) if sizes else []


def _clean_accuracy(ledger: Ledger, level: float) -> dict[str, Estimate]:
    """Over all samples to be evaluated, also those that an attack gave no verdict on."""
    rows = ledger.query(
        "SELECT o.model, count(*) AS n, count(*) FILTER (o.prediction = s.label) AS hits FROM outcomes o "
        "JOIN samples s USING (sample) WHERE o.kind = 'clean' AND s.split = 'evaluate' AND o.prediction IS NOT NULL "
        "GROUP BY o.model"
    ).to_pylist()
    return {row["model"]: proportion(row["hits"], row["n"], level=level) for row in rows}


def _model_dict(row: ModelDamage) -> dict[str, Any]:
    return {
        "model": row.model,
        "clean_accuracy": row.clean_accuracy.as_dict() if row.clean_accuracy else None,
        "success_ratio": [{"eps": eps, **ratio.as_dict()} for eps, ratio in row.success_ratio.items()],
        "relative_damage": row.relative_damage.as_dict() if row.relative_damage else None,
        "clean_error_part": row.clean_error_part,
        "probability_best": row.probability_best,
        "minimal_size": _size_dict(row.minimal_size),
        "mean_size": _size_dict(row.mean_size),
        "verdict": row.verdict,
    }


def _size_dict(size: PerturbationSize | None) -> dict[str, Any] | None:
    if size is None:
        return None
    return {**size.estimate.as_dict(), "n_already_wrong": size.n_already_wrong, "n_resisted": size.n_resisted}
