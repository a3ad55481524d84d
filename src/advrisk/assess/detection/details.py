"""The details of detectors: every group and objective, and every arm."""

from collections.abc import Iterator
from typing import Literal

from advrisk.assess.detection.assessment import DetectorTable
from advrisk.core.sections import Cell, Column, Group, Kind, Table, Value, distinct_columns
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.table import Row

PAPER = "paper's count, natural errors included"
MOST_ARMS = 20  # listed of each detector
_ALL_ARMS = Column("arms", "count")
_BROKEN = Column("samples broken", "count")
_GROUP = Column("group")
ON_GROUPS = (
    "In the tables of groups, averages are over the groups that every column has, and chance is that of all arms "
    "together. A dash: no arm broke a sample, or there was none. Bold on the page: the least AUROC of a line, and the "
    "least of one objective alone.",
)


def fpr_name(tpr: float) -> str:
    """The heading of the false-positive rate at a true-positive rate."""
    return f"FPR at {100 * tpr:.4g} % TPR"


def row_label(row: Row) -> str:
    """The heading of a row; an average that leaves out groups names their number."""
    if not row.left_out:
        return row.label
    return f"{row.label} of {len(row.groups)} of {len(row.groups) + len(row.left_out)} groups"


def detector_group(one: DetectorTable, tpr: float) -> Group:
    """One detector in front of one model: AUROC and FPR in every group, and the arms that evade it."""
    where = f"{one.name} in front of {one.model}"
    shown = (
        _by_group(one, f"AUROC of {where}, by group", "auroc"),
        _by_group(one, f"{fpr_name(tpr)} of {where}, by group", "fpr"),
        _arms(one, f"Arms that get past {where}"),
    )
    return Group(f"{where}: every group, and the arms that get past", shown, folded=True)


def successes_group(one: DetectorTable) -> Group:
    """The number of arms of each group that broke a sample: the same for every detector of a model."""
    title = f"Successful arms per attackable sample of {one.model}, by group"
    others = (_ALL_ARMS, _BROKEN, Column(PAPER, "number"))
    columns = distinct_columns([_GROUP, *(Column(name, "number") for name in one.table.columns), *others])
    rows = []
    for row in one.table.rows:
        whole = row.entries[MULTI_ARMED]
        successes = [entry.successes if entry.n_arms else None for entry in row.entries.values()]
        rows.append((_label(row), *successes, whole.n_arms, whole.n_broken, whole.successes_paper))
    return Group(f"How many arms break {one.model}", (Table(title, columns, tuple(rows)),), folded=True)


def _by_group(one: DetectorTable, title: str, measure: Literal["auroc", "fpr"]) -> Table:
    kind: Kind = "number" if measure == "auroc" else "share"
    others = (Column("chance, all arms", kind), _ALL_ARMS)
    columns = distinct_columns([_GROUP, *(Column(name, kind) for name in one.table.columns), *others])
    rows = []
    for row in one.table.rows:
        whole = row.entries[MULTI_ARMED]
        label = _label(row, *(["worst group"] if row.label == one.table.worst_group else []))
        if measure == "auroc":
            rows.append((label, *_aurocs(row), whole.chance_auroc, whole.n_arms))
        else:
            rates = [entry.fpr_at_tpr for entry in row.entries.values()]
            rows.append((label, *rates, whole.chance_fpr, whole.n_arms))
    return Table(title, columns, tuple(rows))


def _label(row: Row, *beside: str) -> Cell:
    return Cell(row_label(row), beside, "total" if row.kind != "group" else "")


def _aurocs(row: Row) -> Iterator[Value]:
    for name, entry in row.entries.items():
        yield Cell(entry.auroc, mark="worst" if name in (*row.worst, *row.worst_single) else "")


def _arms(one: DetectorTable, title: str) -> Table:
    columns = (
        *(Column("arm"), Column("attacked", "count"), Column("broken", "count"), Column("without alarm", "count")),
        *(Column("share of attackable samples", "share"), Column(PAPER, "share"), Column("scores least", "count")),
        *(Column("passes per sample", "count"), Column("passes per unseen success", "magnitude")),
    )
    rows = tuple(
        (
            *(arm.arm, arm.n_attacked, arm.n_broken, arm.n_unseen, arm.unseen, arm.unseen_paper),
            *(arm.n_least, arm.passes, arm.passes_per_unseen),
        )
        for arm in one.defeat.arms[:MOST_ARMS]
    )
    n_more = len(one.defeat.arms) - MOST_ARMS
    more = (f"And {n_more} more: `advrisk show detection RUN --json` lists all.",) if n_more > 0 else ()
    return Table(title, columns, rows, more)
