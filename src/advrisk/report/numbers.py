"""The numbers that a report leads with, from all kinds of questions, in one table; the rest is in the findings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.protocol import Finding
from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.tables import Row

if TYPE_CHECKING:
    from advrisk.report.findings import Findings


def number_rows(found: "Findings") -> list[Row]:
    """A row for each estimate."""
    rows: list[Row] = []
    if not isinstance(found.damage, str):
        rows += _damage(found.damage)
    built_in = [one for one in found.built_in.values() if isinstance(one, Finding)]
    rows += [number.row() for one in (*built_in, *found.answered) for number in one.quantities]
    return rows


def number_name(row: Row) -> str:
    """A row in words and dots: `broken.plain.linf.0.1`."""
    size = None if row["eps"] is None else f"{row['eps']:g}"
    return ".".join(part for part in (row["quantity"], row["model"], row["of"], size) if part)


def _damage(found: DamageAssessment) -> Iterator[Row]:
    for one in found.models:
        told = {
            "clean_accuracy": one.clean_accuracy,
            "clean_loss": one.clean_loss,
            "clean_rejection": one.clean_rejection,
            "damage": one.damage,
            "relative_damage": one.relative_damage,
            "cost": one.operational_risk,
            "unnoticed_by_people": one.by_people,
        }
        if one.by_detector is not None:
            told |= {f"detector_{name}": estimate for name, estimate in vars(one.by_detector).items()}
        yield from (_row(name, one.model, estimate) for name, estimate in told.items() if estimate is not None)
        for name, shares in (("robust_accuracy", one.robust_accuracy), ("broken", one.success_ratio)):
            for eps, share in shares.items():
                yield _row(name, one.model, share, of=found.distances.norm, eps=eps)


def _row(quantity: str, model: str, found: Estimate, *, of: str | None = None, eps: float | None = None) -> Row:
    return {"quantity": quantity, "model": model, "of": of, "eps": eps, **estimate_columns(found)}
