"""An assessment of damage as a table with one number per row."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.tables import ESTIMATE, Columns, Row
from advrisk.risk.decision import Pair

if TYPE_CHECKING:
    from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage

# `eps` is the size of a robust accuracy or an attack success rate, `other` the model with which a difference compares,
# `verdict` belongs to the number that ranks the models.
COLUMNS: Columns = {
    "model": "text",
    "name": "text",
    "eps": "number",
    "other": "text",
    **ESTIMATE,
    "verdict": "text",
    "more_samples": "count",
}


def damage_rows(assessment: "DamageAssessment") -> list[Row]:
    """The numbers of every model, least damage first, then every pairwise difference."""
    rows = [row for model in assessment.models for row in _of_model(model)]
    return [*rows, *(_of_pair(pair) for pair in assessment.pairs)]


def _of_model(row: "ModelDamage") -> Iterator[Row]:
    by_detector = row.by_detector
    named: dict[str, Estimate | float | None] = {
        "clean_accuracy": row.clean_accuracy,
        "clean_loss": row.clean_loss,
        "clean_rejection": row.clean_rejection,
        "damage": row.damage,
        "relative_damage": row.relative_damage,
        "clean_error_part": row.clean_error_part,
        "extrapolated": row.extrapolated,
        **({} if by_detector is None else {f"detector_{name}": value for name, value in vars(by_detector).items()}),
        "by_people": row.by_people,
        "operational_risk": row.operational_risk,
        "probability_best": row.probability_best,
        "minimal_distance": None if row.minimal_size is None else row.minimal_size.estimate,
        "mean_distance": None if row.mean_size is None else row.mean_size.estimate,
    }
    for name, value in named.items():
        if value is not None:
            verdict = row.verdict if value is row.ranked_by else None
            yield _row(row.model, name, value, verdict=verdict)
    for name, shares in (("robust_accuracy", row.robust_accuracy), ("attack_success_rate", row.success_ratio)):
        for eps, share in shares.items():
            yield _row(row.model, name, share, eps=eps)


def _of_pair(pair: Pair) -> Row:
    verdict = "undecided" if pair.undecided else "decided"
    row = _row(pair.higher, "difference", pair.difference, other=pair.lower, verdict=verdict)
    return row | {"more_samples": pair.more_samples}


def _row(
    model: str,
    name: str,
    value: Estimate | float,
    *,
    eps: float | None = None,
    other: str | None = None,
    verdict: str | None = None,
) -> Row:
    numbers = estimate_columns(value) if isinstance(value, Estimate) else estimate_columns(None) | {"value": value}
    key = {"model": model, "name": name, "eps": eps, "other": other}
    return key | numbers | {"verdict": verdict, "more_samples": None}
