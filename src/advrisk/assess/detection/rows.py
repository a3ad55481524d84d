"""An assessment of detectors as a table: one row per entry, with its AUROC and false-positive rate."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from advrisk.core.tables import Columns
from advrisk.core.tables import Row as TableRow
from advrisk.risk.detection.adaptive import AdaptiveEffect
from advrisk.risk.detection.entries import Entry
from advrisk.risk.detection.groups import ADAPTIVE, MULTI_ARMED
from advrisk.risk.detection.table import Row

if TYPE_CHECKING:
    from advrisk.assess.detection.assessment import DetectorTable

_MARKS: Columns = {
    "worst_column": "flag",
    "worst_single": "flag",
    "worst_group": "flag",
    "n_groups": "count",
    "n_groups_left_out": "count",
    "groups_left_out": "text",
}
COLUMNS: Columns = {
    "model": "text",
    "detector": "text",
    "row": "text",
    "kind": "text",
    "norm": "text",
    "column": "text",
    "auroc": "number",
    "auroc_low": "number",
    "auroc_high": "number",
    "auroc_method": "text",
    "fpr_at_tpr": "number",
    "fpr_at_tpr_low": "number",
    "fpr_at_tpr_high": "number",
    "fpr_at_tpr_method": "text",
    "level": "number",
    "n": "count",
    "chance_auroc": "number",
    "chance_fpr": "number",
    "n_arms": "count",
    "n_broken": "count",
    "n_attackable": "count",
    "successes_per_sample": "number",
    "successes_per_sample_paper": "number",
    **_MARKS,
    "reason": "text",
}


def table_rows(one: "DetectorTable") -> Iterator[TableRow]:
    """Rows for every group and column of one detector in front of one model, then for adaptive arms."""
    for row in one.table.rows:
        for column, entry in row.entries.items():
            yield _in_table(one, row, column, entry)
    for survival in one.table.adaptive:
        for column, entry in survival.entries.items():
            yield _adaptive(one, survival, column, entry)


def _in_table(one: "DetectorTable", row: Row, column: str, entry: Entry) -> TableRow:
    marks = {
        "worst_column": column in row.worst,
        "worst_single": column in row.worst_single,
        "worst_group": column == MULTI_ARMED and one.table.worst_group == row.label,
        "n_groups": len(row.groups) if row.kind != "group" else None,
        "n_groups_left_out": len(row.left_out) if row.kind != "group" else None,
        "groups_left_out": "; ".join(f"{label} ({reason})" for label, reason in row.left_out.items()) or None,
    }
    return _line(one, (row.label, row.kind, row.norm, column), entry, marks)


def _adaptive(one: "DetectorTable", survival: AdaptiveEffect, column: str, entry: Entry) -> TableRow:
    marks = dict.fromkeys(_MARKS) | {"worst_column": False, "worst_single": False, "worst_group": False}
    return _line(one, (survival.label, ADAPTIVE, survival.norm, column), entry, marks)


def _line(one: "DetectorTable", key: tuple[str, str, str, str], entry: Entry, marks: Mapping[str, Any]) -> TableRow:
    measured = {
        f"{name}{end}": getattr(estimate, part) if estimate else None
        for name, estimate in (("auroc", entry.auroc), ("fpr_at_tpr", entry.fpr_at_tpr))
        for part, end in (("value", ""), ("low", "_low"), ("high", "_high"), ("method", "_method"))
    }
    return {
        "model": one.model,
        "detector": one.detector,
        **dict(zip(("row", "kind", "norm", "column"), key, strict=True)),
        **measured,
        "level": entry.auroc.level if entry.auroc else None,
        "n": entry.auroc.n if entry.auroc else None,
        "chance_auroc": entry.chance_auroc,
        "chance_fpr": entry.chance_fpr,
        "n_arms": entry.n_arms,
        "n_broken": entry.n_broken,
        "n_attackable": entry.n_attackable,
        "successes_per_sample": entry.successes,
        "successes_per_sample_paper": entry.successes_paper,
        **marks,
        "reason": entry.reason,
    }
