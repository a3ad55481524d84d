"""The numbers that a report leads with, from all kinds of questions, in one table; the rest is in the findings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.tables import Row

if TYPE_CHECKING:
    from advrisk.report.findings import Findings


def number_rows(found: "Findings") -> list[Row]:
    """A row for each estimate."""
    rows: list[Row] = []
    if not isinstance(found.damage, str):
        rows += _damage(found.damage)
    if not isinstance(found.detection, str):
        rows += _detection(found.detection)
    built_in = (one for one in found.built_in.values() if isinstance(one, Finding))
    rows += [number.row() for one in built_in for number in one.quantities]
    if not isinstance(found.survival, str):
        rows += _survival(found.survival)
    if not isinstance(found.certificates, str):
        rows += _certificates(found.certificates)
    rows += [number.row() for one in found.answered for number in one.quantities]
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


def _detection(found: DetectionAssessment) -> Iterator[Row]:
    for one in found.tables:
        for name, estimate in (("auroc", one.overall.auroc), ("fpr", one.overall.fpr_at_tpr)):
            if estimate is not None:
                yield _row(name, one.model, estimate, of=one.name)


def _survival(found: SurvivalAssessment) -> Iterator[Row]:
    for one in found.models:
        told = {
            "survival_mean": one.mean,
            "survival_median": one.median if one.reached else None,
            "failure_rate_clean": None if one.benign is None else one.benign.estimate,
            "failure_rate_attacked": None if one.adversarial is None else one.adversarial.estimate,
        }
        for name, estimate in told.items():
            if estimate is not None:
                yield _row(name, one.model, estimate, of=found.durations.measure)


def _certificates(found: CertificateAssessment) -> Iterator[Row]:
    for model in found.models:
        yield _row("certificate_clean_error", model.model, model.clean_error)
        for one in model.lists:
            if one.certificate is not None:
                tested = {"worst_attack": one.certificate.worst, "any_attack": one.certificate.union}
                for name, test in tested.items():
                    yield _row(f"certificate_{name}", one.model, test.risk, of=one.norm, eps=one.eps)


def _row(quantity: str, model: str, found: Estimate, *, of: str | None = None, eps: float | None = None) -> Row:
    return {"quantity": quantity, "model": model, "of": of, "eps": eps, **estimate_columns(found)}
