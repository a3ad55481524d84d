"""Sections of one group of arms: each detector against chance, and its detection rates."""

from collections.abc import Iterator, Sequence

from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.detection.curves import RATES, GroupCurves
from advrisk.assess.detection.details import fpr_name
from advrisk.assess.detection.sections import AUROC, CHANCE
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.sections import Column, Section, Table, Text, Value
from advrisk.risk.detection.groups import MULTI_ARMED

_DETECTED = (
    "Broken samples, each against all arms of the group. --json has every point of the curves; the report draws them."
)


def group_sections(assessment: DetectionAssessment, curves: Sequence[GroupCurves]) -> Iterator[Section]:
    """Every detector with this group, in front of every model."""
    first = {one.table.model: one for one in reversed(curves)}
    firsts = [first[model] for model in dict.fromkeys(one.table.model for one in curves)]
    yield Text(tuple(_on_arms(one) for one in firsts))
    yield _measured(assessment, curves)
    yield _detected(curves, firsts)
    yield Text((AUROC, *assessment.notes))


def _on_arms(one: GroupCurves) -> str:
    entry = one.row.entries[MULTI_ARMED]
    of = f"{entry.n_broken} of {counted(entry.n_attackable, 'attackable sample')}"
    return f"{one.table.model}, {one.row.label}: {counted(entry.n_arms, 'arm')} broke {of}."


def _measured(assessment: DetectionAssessment, curves: Sequence[GroupCurves]) -> Table:
    columns = (
        *(Column("detector"), Column("model"), Column("AUROC", "number"), Column("chance", "number")),
        *(Column("arms", "count"), Column(fpr_name(assessment.tpr), "share"), Column("FPR by chance", "share")),
    )
    entries = [(one.table, one.row.entries[MULTI_ARMED]) for one in curves]
    rows = tuple(
        (of.name, of.model, one.auroc, one.chance_auroc, one.n_arms, one.fpr_at_tpr, one.chance_fpr)
        for of, one in entries
    )
    return Table(f"Each detector against all arms of {curves[0].row.label}", columns, rows, (CHANCE,))


def _detected(curves: Sequence[GroupCurves], firsts: Sequence[GroupCurves]) -> Table:
    columns = (Column("detector"), Column("model"), *(Column(percent_text(rate), "share") for rate in RATES))
    rows: list[tuple[Value, ...]] = [
        (one.table.name, one.table.model, *(one.detected(rate) for rate in RATES)) for one in curves
    ]
    rows += [("(chance)", one.table.model, *(one.chance_detected(rate) for rate in RATES)) for one in firsts]
    return Table("Detected at false alarms of at most", columns, tuple(rows), (_DETECTED,))
