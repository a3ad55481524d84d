"""The numbers that a report leads with, from all kinds of questions, in one table; the rest is in the findings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.tables import Row

if TYPE_CHECKING:
    from advrisk.report.findings import Findings


def number_rows(found: "Findings") -> list[Row]:
    """A row for each estimate."""
    built_in = (one for one in found.built_in.values() if isinstance(one, Finding))
    rows = [number.row() for one in built_in for number in one.quantities]
    if not isinstance(found.detection, str):
        rows += _detection(found.detection)
    if not isinstance(found.indicators, str):
        rows += _indicators(found.indicators)
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


def _detection(found: DetectionAssessment) -> Iterator[Row]:
    for one in found.tables:
        for name, estimate in (("auroc", one.overall.auroc), ("fpr", one.overall.fpr_at_tpr)):
            if estimate is not None:
                yield _row(name, one.model, estimate, of=one.name)


def _indicators(found: IndicatorAssessment) -> Iterator[Row]:
    for result in found.results:
        for one in result.models:
            for branch in one.tree.walk():
                of = ".".join(part for part in (result.scenario.name, result.loss, branch.path) if part)
                yield _row("risk", one.model, branch.value, of=of)
    for model, measures in found.measures.items():
        for name, estimate in measures.items():
            yield _row("measure", model, estimate, of=name.partition("@")[0])


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
