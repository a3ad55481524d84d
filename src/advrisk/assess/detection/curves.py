"""The ROC of every detector in one group of arms, and that of chance."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorTable
from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.core.plain import plain
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.roc import Floats, Roc
from advrisk.risk.detection.table import Row

RATES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of false alarms, at which a curve is evaluated


@dataclass(frozen=True, eq=False)
class GroupCurves:
    """One detector in front of one model, in one group."""

    table: DetectorTable
    row: Row
    roc: Mapping[str, Roc]  # column -> curve; without those that broke no sample
    chance: tuple[Floats, Floats] | None  # false- and true-positive rates of random scores against all arms

    def detected(self, rate: float) -> float | None:
        """The share of broken samples detected, against all arms, at this rate of false alarms."""
        return _read(self.roc[MULTI_ARMED].fpr, self.roc[MULTI_ARMED].tpr, rate) if MULTI_ARMED in self.roc else None

    def chance_detected(self, rate: float) -> float | None:
        """`detected` for random scores."""
        return None if self.chance is None else float(np.interp(rate, *self.chance))

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        chance = None if self.chance is None else dict(zip(("fpr", "tpr"), self.chance, strict=True))
        fields = {
            "model": self.table.model,
            "detector": self.table.detector,
            "group": self.row.label,
            "n": self.table.n,
            "n_attackable": self.table.table.n_attackable,
            "entries": self.row.entries,
            "roc": {name: roc._asdict() for name, roc in self.roc.items()},
            "chance_roc": chance,
        }
        return dict(plain(fields))


def group_curves(assessment: DetectionAssessment, group: str) -> tuple[GroupCurves, ...]:
    """The curves of every detector with this group: `linf 8/255`, `linf-8/255` and `linf-0.0313725` are one."""
    labels = {one: one.table.group_label(group) for one in assessment.tables}
    curves = tuple(_curves(one, label) for one, label in labels.items() if label is not None)
    if not curves:
        groups = dict.fromkeys(label for one in assessment.tables for label in one.table.groups)
        raise RiskError(f"there is no group {group!r}; {did_you_mean(group, groups)}")
    return curves


def _curves(one: DetectorTable, label: str) -> GroupCurves:
    row = one.table.row(label)
    measured = [name for name, entry in row.entries.items() if entry.auroc is not None]
    chance = one.table.chance_roc(label) if MULTI_ARMED in measured else None
    return GroupCurves(one, row, {name: one.table.roc(label, name) for name in measured}, chance)


def _read(fpr: Floats, tpr: Floats, rate: float) -> float:
    return float(tpr[np.flatnonzero(fpr <= rate + 1e-12)[-1]])
