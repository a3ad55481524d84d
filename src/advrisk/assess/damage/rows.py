"""An assessment of damage as a table: one number on each row."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.tables import ESTIMATE, Columns, Row
from advrisk.risk.decision import Pair

if TYPE_CHECKING:
    from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage

# `eps` is the size of a robust accuracy or an attack success rate, `other` the model that a difference is taken from,
# `verdict` what stands beside the number that models are ranked by.
COLUMNS: Columns = {
    "model": "text",
    "name": "text",
    "eps": "number",
    "other": "text",
    **ESTIMATE,
    "verdict": "text",
    "more_samples": "count",
}


def damage_rows(found: "DamageAssessment") -> list[Row]:
    """The numbers of every model, least damage first, then the difference of every two."""
    rows = [row for model in found.models for row in _of_model(model)]
    return [*rows, *(_of_pair(pair) for pair in found.pairs)]


def _of_model(one: "ModelDamage") -> Iterator[Row]:
    beside = one.by_detector
    named: dict[str, Estimate | float | None] = {
        "clean_accuracy": one.clean_accuracy,
        "clean_loss": one.clean_loss,
        "clean_rejection": one.clean_rejection,
        "damage": one.damage,
        "relative_damage": one.relative_damage,
        "clean_error_part": one.clean_error_part,
        "extrapolated": one.extrapolated,
        **({} if beside is None else {f"detector_{name}": found for name, found in vars(beside).items()}),
        "by_people": one.by_people,
        "operational_risk": one.operational_risk,
        "probability_best": one.probability_best,
        "minimal_distance": None if one.minimal_size is None else one.minimal_size.estimate,
        "mean_distance": None if one.mean_size is None else one.mean_size.estimate,
    }
    for name, found in named.items():
        if found is not None:
            verdict = one.verdict if found is one.ranked_by else None
            yield _row(one.model, name, found, verdict=verdict)
    for name, shares in (("robust_accuracy", one.robust_accuracy), ("attack_success_rate", one.success_ratio)):
        for eps, share in shares.items():
            yield _row(one.model, name, share, eps=eps)


def _of_pair(pair: Pair) -> Row:
    verdict = "undecided" if pair.undecided else "decided"
    row = _row(pair.higher, "difference", pair.difference, other=pair.lower, verdict=verdict)
    return row | {"more_samples": pair.more_samples}


def _row(
    model: str,
    name: str,
    found: Estimate | float,
    *,
    eps: float | None = None,
    other: str | None = None,
    verdict: str | None = None,
) -> Row:
    told = estimate_columns(found) if isinstance(found, Estimate) else estimate_columns(None) | {"value": found}
    place = {"model": model, "name": name, "eps": eps, "other": other}
    return place | told | {"verdict": verdict, "more_samples": None}
