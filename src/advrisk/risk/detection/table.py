"""Detection table of a detector and a model: groups by objectives, averages as in the paper, marks. Arrays only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.risk.detection.adaptive import AdaptiveEffect, adaptive_effects
from advrisk.risk.detection.arm_sets import ArmSetRates, average
from advrisk.risk.detection.entries import Cut, Entry, Scored, Settings, entry_of, measured
from advrisk.risk.detection.groups import MULTI_ARMED, ArmGroup, arms_of, columns, grouped, named_group
from advrisk.risk.detection.performance import auroc_estimate, fpr_estimate
from advrisk.risk.detection.roc import Floats, Roc, chance_roc, exact_roc

AVERAGE = "average"
NOT_SHARED = "no group that all columns share"

Measured = Mapping[tuple[str, str], ArmSetRates | None]  # by (group, column)


@dataclass(frozen=True)
class Row:
    """A group, the average of a norm's groups, or the average over norms."""

    label: str
    kind: Literal["group", "norm", "all"]
    norm: str
    entries: Mapping[str, Entry]  # column -> entry
    worst: tuple[str, ...]  # the columns with the least AUROC, including ties; empty if all are equal
    worst_single: tuple[str, ...]  # the same among columns with one objective
    groups: tuple[str, ...] = ()  # of an average: its groups, the same for every column
    left_out: Mapping[str, str] = field(default_factory=dict)  # of an average: group -> why no column includes it


@dataclass(frozen=True, eq=False)
class DetectionTable:
    """All groups and columns of one detector in front of one model."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    worst_group: str | None  # the one whose multi-armed AUROC is least above its chance
    adaptive: tuple[AdaptiveEffect, ...]
    overall: ArmSetRates | None = field(repr=False)  # the multi-armed average, for differences
    _scored: Scored = field(repr=False)
    _groups: tuple[ArmGroup, ...] = field(repr=False)

    def row(self, label: str) -> Row:
        """The row with that label; for a group, every spelling of `group_label` works."""
        labels = (label, self.group_label(label))
        match = next((row for row in self.rows if row.label in labels), None)
        if match is None:
            raise RiskError(f"there is no row {label!r}; {did_you_mean(label, [row.label for row in self.rows])}")
        return match

    def group_label(self, label: str) -> str | None:
        """Label of a group, or None; `linf 8/255`, `linf-8/255` and `linf-0.0313725` are the same."""
        group = named_group(self._groups, label)
        return None if group is None else group.label

    @property
    def groups(self) -> tuple[str, ...]:
        """Labels of all groups."""
        return tuple(group.label for group in self._groups)

    @property
    def n_arms(self) -> int:
        """Number of arms in all groups, without adaptive ones."""
        return sum(len(group.arms) for group in self._groups)

    @property
    def n_attackable(self) -> int:
        """Number of samples that an arm could break: no natural errors, unless success is another prediction."""
        return int(self._scored.breakable.sum())

    @property
    def n_adaptive(self) -> int:
        """Number of arms that are adapted to this detector."""
        return sum(effect.alone.n_arms for effect in self.adaptive)

    @property
    def average(self) -> Row:
        """The last row, the average over norms."""
        return self.rows[-1]

    def roc(self, group: str, column: str = MULTI_ARMED) -> Roc:
        """Exact worst-case ROC of an entry; averages have none."""
        worst = self._cut(group, column).worst(self._scored)
        return exact_roc(self._scored.clean, worst[~np.isnan(worst)])

    def chance_roc(self, group: str, column: str = MULTI_ARMED) -> tuple[Floats, Floats]:
        """False- and true-positive rates of a detector with random scores, against the same arms."""
        return chance_roc(self._cut(group, column).success.sum(axis=0))

    def _cut(self, group: str, column: str) -> Cut:
        row = self.row(group)
        if column not in self.columns:
            raise RiskError(f"there is no column {column!r}; {did_you_mean(column, self.columns)}")
        groups = {one.label: one for one in self._groups}
        group = row.label
        if group not in groups or row.entries[column].auroc is None:
            reason = row.entries[column].reason or "it is an average"
            raise RiskError(f"{group}, {column}: there is no ROC: {reason}")
        return Cut.of(self._scored, arms_of(column, groups[group], self._scored.arms, self.columns))


def detection_table(scored: Scored, detector: str, settings: Settings) -> DetectionTable:
    """Measure every group and column, each set of arms once."""
    names, groups = columns(scored.arms), grouped(scored.arms)
    cells = {(group.label, name): arms_of(name, group, scored.arms, names) for group in groups for name in names}
    cuts = {arms: Cut.of(scored, arms) for arms in sorted(set(cells.values()))}
    rates = dict(zip(cuts, measured(scored, list(cuts.values()), settings), strict=True))
    entries = {arms: entry_of(cut, rates[arms], settings) for arms, cut in cuts.items()}
    rows = [
        _row(group.label, "group", group.norm, {name: entries[cells[group.label, name]] for name in names})
        for group in groups
    ]
    averages, overall = _averages(rows, names, {key: rates[arms] for key, arms in cells.items()}, settings)
    return DetectionTable(
        columns=names,
        rows=(*rows, *averages),
        worst_group=_weakest(rows),
        adaptive=adaptive_effects(scored, detector, groups, settings),
        overall=overall,
        _scored=scored,
        _groups=groups,
    )


def _row(
    label: str,
    kind: Literal["group", "norm", "all"],
    norm: str,
    entries: dict[str, Entry],
    groups: Sequence[str] = (),
    left_out: Mapping[str, str] | None = None,
) -> Row:
    single = {name: entry for name, entry in entries.items() if name != MULTI_ARMED}
    return Row(label, kind, norm, entries, _marked(entries), _marked(single), tuple(groups), left_out or {})


def _weakest(rows: Sequence[Row]) -> str | None:
    """The group with the least AUROC above chance, as more arms lower the AUROC of any detector."""
    above = {row.label: row.entries[MULTI_ARMED].above_chance for row in rows}
    measured = {label: value for label, value in above.items() if value is not None}
    return min(measured, key=measured.__getitem__) if measured else None


def _marked(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """Columns with the least AUROC; none if all are equal."""
    auroc = {name: entry.auroc.value for name, entry in entries.items() if entry.auroc is not None}
    if len(set(auroc.values())) == 1 < len(entries):
        return ()
    return tuple(name for name, value in auroc.items() if value == min(auroc.values()))


def _averages(
    rows: Sequence[Row], names: Sequence[str], measured: Measured, settings: Settings
) -> tuple[list[Row], ArmSetRates | None]:
    """A row for each norm with several groups, and one over the norms.

    Every column of a row averages the same groups: those in which all columns have an AUROC. Otherwise an objective
    that breaks samples only at large sizes would appear easy to detect.
    """
    compared, left_out = _common(rows, names, measured)
    by_norm: list[Row] = []
    of_norm: dict[tuple[str, str], ArmSetRates | None] = {}
    for norm in dict.fromkeys(row.norm for row in rows):
        own = [row for row in rows if row.norm == norm]
        common = [row for row in own if row.label not in left_out]
        cells = {}
        for name in names:
            parts = [measured[row.label, name] for row in common] if name in compared else []
            cells[name], of_norm[norm, name] = _averaged(name, common, own, parts, settings)
        missing = {row.label: left_out[row.label] for row in own if row.label in left_out}
        by_norm.append(_row(f"{norm}, {AVERAGE}", "norm", norm, cells, [row.label for row in common], missing))
    averaged = [row for row in by_norm if row.groups]
    cells, overall = {}, None
    for name in names:
        parts = [of_norm[row.norm, name] for row in averaged] if name in compared else []
        cells[name], overall = _averaged(name, averaged, rows, parts, settings)
    several = [row for row in by_norm if sum(row.norm == other.norm for other in rows) > 1]
    return [
        *several,
        _row(AVERAGE, "all", "", cells, [label for row in averaged for label in row.groups], left_out),
    ], overall


def _common(rows: Sequence[Row], names: Sequence[str], measured: Measured) -> tuple[list[str], dict[str, str]]:
    """The columns to compare, and the groups that some of them lack, with the reason.

    A column without any AUROC is not compared. If the others share no group, only the multi-armed column is averaged.
    """
    compared = [name for name in names if any(measured[row.label, name] for row in rows)]
    lacking = {row.label: [name for name in compared if measured[row.label, name] is None] for row in rows}
    if all(lacking.values()) and MULTI_ARMED in compared:
        compared = [MULTI_ARMED]
        lacking = {row.label: [] if measured[row.label, MULTI_ARMED] else compared for row in rows}
    entries = {row.label: row.entries for row in rows}
    if not compared:
        return [], {label: of_column[MULTI_ARMED].reason for label, of_column in entries.items()}
    return compared, {label: _lack(columns, entries[label]) for label, columns in lacking.items() if columns}


def _lack(columns: Sequence[str], entries: Mapping[str, Entry]) -> str:
    """Why columns lack a group: `gini, kl: no arm succeeded`; without names if no arm of the group broke a sample."""
    if MULTI_ARMED in columns:
        return entries[MULTI_ARMED].reason
    reasons: dict[str, list[str]] = {}
    for name in columns:
        reasons.setdefault(entries[name].reason, []).append(name)
    return "; ".join(f"{', '.join(each)}: {reason}" for reason, each in reasons.items())


def _averaged(
    name: str, rows: Sequence[Row], all_rows: Sequence[Row], parts: Sequence[ArmSetRates | None], settings: Settings
) -> tuple[Entry, ArmSetRates | None]:
    """One column of an average of these rows; counts of `all_rows` if there is nothing to average."""
    measured = [part for part in parts if part is not None]
    entries = [row.entries[name] for row in (rows if measured else all_rows)]
    n_arms = sum(entry.n_arms for entry in entries)
    n_attackable = max((entry.n_attackable for entry in entries), default=0)
    successes = _mean([entry.successes for entry in entries]), _mean([entry.successes_paper for entry in entries])
    if not measured:
        reasons = {entry.reason for entry in entries}
        reason = NOT_SHARED if "" in reasons else "no arm succeeded" if n_arms else "no arm"
        return Entry(n_arms, 0, n_attackable, *successes, reason=reason), None
    rates = average(measured)
    return (
        Entry(
            n_arms,
            rates.n,
            n_attackable,
            *successes,
            auroc=auroc_estimate(rates, settings.level),
            fpr_at_tpr=fpr_estimate(rates, settings.level),
            chance_auroc=_mean([entry.chance_auroc for entry in entries]),
            chance_fpr=_mean([entry.chance_fpr for entry in entries]),
        ),
        rates,
    )


def _mean(values: Sequence[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None])) if values else 0.0
