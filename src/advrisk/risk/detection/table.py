"""The table of a detector in front of a model: groups by objectives, averages as in the paper, marks. Arrays only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.risk.detection.entries import Cut, Entry, Scored, Settings, entry_of, measured
from advrisk.risk.detection.groups import MULTI_ARMED, Group, arms_of, columns, grouped
from advrisk.risk.detection.measure import Measure, average
from advrisk.risk.detection.performance import auroc_estimate, fpr_estimate
from advrisk.risk.detection.roc import Floats, Roc, chance_roc, exact_roc
from advrisk.risk.detection.survival import Survival, survivals

AVERAGE = "average"


@dataclass(frozen=True)
class Row:
    """A group, the average of a norm's groups, or the average over norms."""

    label: str
    kind: Literal["group", "norm", "all"]
    norm: str
    entries: Mapping[str, Entry]  # column -> entry
    n_left_out: Mapping[str, int]  # column -> groups without a success (or arm), which an average leaves out
    worst: tuple[str, ...]  # the columns with the least AUROC, several where they are equal; none where all are
    worst_single: tuple[str, ...]  # the same of those with one objective


@dataclass(frozen=True, eq=False)
class Table:
    """All groups and columns of one detector in front of one model."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    worst_group: str | None  # of the multi-armed column
    adaptive: tuple[Survival, ...]
    overall: Measure | None = field(repr=False)  # the multi-armed average, for differences
    _scored: Scored = field(repr=False)
    _groups: Mapping[str, Group] = field(repr=False)

    def row(self, label: str) -> Row:
        """The row of that label."""
        found = next((row for row in self.rows if row.label == label), None)
        if found is None:
            raise RiskError(f"there is no row {label!r}; {did_you_mean(label, [row.label for row in self.rows])}")
        return found

    @property
    def n_arms(self) -> int:
        """Arms of all groups; adaptive ones are in none."""
        return sum(len(group.arms) for group in self._groups.values())

    @property
    def n_knowing(self) -> int:
        """Arms that know this detector."""
        return sum(survival.alone.n_arms for survival in self.adaptive)

    @property
    def average(self) -> Row:
        """The last row: over the norms."""
        return self.rows[-1]

    def roc(self, group: str, column: str = MULTI_ARMED) -> Roc:
        """The exact worst-case ROC of an entry; averages have none."""
        worst = self._cut(group, column).worst(self._scored)
        return exact_roc(self._scored.clean, worst[~np.isnan(worst)])

    def chance_roc(self, group: str, column: str = MULTI_ARMED) -> tuple[Floats, Floats]:
        """False- and true-positive rates of a detector that says random numbers, against the same arms."""
        return chance_roc(self._cut(group, column).success.sum(axis=0))

    def _cut(self, group: str, column: str) -> Cut:
        row = self.row(group)
        if column not in self.columns:
            raise RiskError(f"there is no column {column!r}; {did_you_mean(column, self.columns)}")
        if group not in self._groups or row.entries[column].auroc is None:
            reason = row.entries[column].reason or "it is an average"
            raise RiskError(f"{group}, {column}: there is no ROC: {reason}")
        arms = arms_of(column, self._groups[group], self._scored.arms, self.columns)
        return Cut.of(self._scored, arms)


def detection_table(scored: Scored, detector: str, settings: Settings) -> Table:
    """Measure every group and column once, and put them together."""
    names, groups = columns(scored.arms), grouped(scored.arms)
    cells = {(group.label, name): arms_of(name, group, scored.arms, names) for group in groups for name in names}
    cuts = {arms: Cut.of(scored, arms) for arms in sorted(set(cells.values()))}
    found = dict(zip(cuts, measured(scored, list(cuts.values()), settings), strict=True))
    entries = {arms: entry_of(cut, found[arms], settings) for arms, cut in cuts.items()}
    rows = [
        _row(group.label, "group", group.norm, {name: entries[cells[group.label, name]] for name in names})
        for group in groups
    ]
    averages, overall = _averages(groups, names, {key: found[arms] for key, arms in cells.items()}, rows, settings)
    return Table(
        columns=names,
        rows=(*rows, *averages),
        worst_group=next(iter(_least({row.label: row.entries[MULTI_ARMED] for row in rows})), None),
        adaptive=survivals(scored, detector, groups, settings),
        overall=overall,
        _scored=scored,
        _groups={group.label: group for group in groups},
    )


def _row(
    label: str,
    kind: Literal["group", "norm", "all"],
    norm: str,
    entries: dict[str, Entry],
    left_out: Mapping[str, int] | None = None,
) -> Row:
    single = {name: entry for name, entry in entries.items() if name != MULTI_ARMED}
    return Row(label, kind, norm, entries, left_out or dict.fromkeys(entries, 0), _marked(entries), _marked(single))


def _least(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """All names with the least AUROC."""
    known = {name: entry.auroc.value for name, entry in entries.items() if entry.auroc is not None}
    return tuple(name for name, value in known.items() if value == min(known.values()))


def _marked(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """The columns with the least AUROC, unless all are equal."""
    values = {entry.auroc.value for entry in entries.values() if entry.auroc is not None}
    return () if len(values) == 1 < len(entries) else _least(entries)


def _averages(
    groups: Sequence[Group],
    names: Sequence[str],
    measured: Mapping[tuple[str, str], Measure | None],
    rows: Sequence[Row],
    settings: Settings,
) -> tuple[list[Row], Measure | None]:
    """A row for each norm, over its groups, unless it has but one; and one over the norms.

    Groups without a success are left out, and counted.
    """
    entries = {row.label: row.entries for row in rows}
    made: list[Row] = []
    of_norm: dict[tuple[str, str], Measure | None] = {}
    for norm in dict.fromkeys(group.norm for group in groups):
        labels = [group.label for group in groups if group.norm == norm]
        cells, left_out = {}, {}
        for name in names:
            parts = [measured[label, name] for label in labels]
            cells[name], of_norm[norm, name] = _averaged([entries[label][name] for label in labels], parts, settings)
            left_out[name] = parts.count(None)
        made.append(_row(f"{norm}, {AVERAGE}", "norm", norm, cells, left_out))
    cells, left_out, overall = {}, {}, None
    for name in names:
        cells[name], overall = _averaged(
            [row.entries[name] for row in made], [of_norm[row.norm, name] for row in made], settings
        )
        left_out[name] = sum(row.n_left_out[name] for row in made)
    several = [row for row in made if sum(group.norm == row.norm for group in groups) > 1]
    return [*several, _row(AVERAGE, "all", "", cells, left_out)], overall


def _averaged(
    entries: Sequence[Entry], parts: Sequence[Measure | None], settings: Settings
) -> tuple[Entry, Measure | None]:
    known = [(entry, part) for entry, part in zip(entries, parts, strict=True) if part is not None]
    n_arms = sum(entry.n_arms for entry in entries)
    if not known:
        return Entry(n_arms, 0, 0.0, None, None, None, None, "no arm succeeded" if n_arms else "no arm"), None
    found = average([part for _, part in known])
    tried = [entry.successes for entry in entries if entry.n_arms]
    return (
        Entry(
            n_arms=n_arms,
            n_broken=found.n,
            successes=float(np.mean(tried)),
            auroc=auroc_estimate(found, settings.level),
            fpr_at_tpr=fpr_estimate(found, settings.level),
            chance_auroc=float(np.mean([entry.chance_auroc for entry, _ in known])),
            chance_fpr=float(np.mean([entry.chance_fpr for entry, _ in known])),
        ),
        found,
    )
