"""The table of a detector in front of a model: groups by objectives, averages as in the paper, marks. Arrays only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.risk.detection.groups import ADAPTIVE, MULTI_ARMED, Group, ScoredArm, arms_of, columns, grouped, size_of
from advrisk.risk.detection.measure import Measure, average, measures
from advrisk.risk.detection.performance import auroc_estimate, fpr_estimate
from advrisk.risk.detection.roc import (
    Flags,
    Floats,
    Integers,
    Roc,
    chance_auroc,
    chance_fpr,
    exact_roc,
    worst_case_scores,
)

AVERAGE = "average"
Places = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A detector against some arms, all together. Where none of them broke a sample, `reason` says so."""

    n_arms: int
    n_broken: int  # samples that at least one arm broke
    successes: float  # arms that broke a sample, on average over all samples
    auroc: Estimate | None
    fpr_at_tpr: Estimate | None
    chance_auroc: float | None  # of a detector that says random numbers
    chance_fpr: float | None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        estimates = {
            name: None if found is None else found.as_dict()
            for name, found in (("auroc", self.auroc), ("fpr_at_tpr", self.fpr_at_tpr))
        }
        return vars(self) | estimates


@dataclass(frozen=True)
class Row:
    """A group, the average of a norm's groups, or the average over norms."""

    label: str
    kind: Literal["group", "norm", "all"]
    norm: str
    entries: Mapping[str, Entry]  # column -> entry
    n_left_out: Mapping[str, int]  # column -> groups without a success (or arm), which an average leaves out
    worst: str | None  # the column with the least AUROC; None where all are equal
    worst_single: str | None  # the same of those with one objective


@dataclass(frozen=True)
class Survival:
    """What is left of a group's AUROC once attackers know the detector."""

    label: str
    without: Entry  # the group as it stands in the table
    alone: Entry  # the adaptive arms alone
    together: Entry


@dataclass(frozen=True, eq=False)
class Scored:
    """What one detector says of one model's samples."""

    arms: tuple[ScoredArm, ...]
    success: Flags  # (arms, samples)
    score: Floats  # (arms, samples); counts where there is a success
    clean: Floats  # (samples,)


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
    def average(self) -> Row:
        """The last row: over the norms."""
        return self.rows[-1]

    def roc(self, group: str, column: str = MULTI_ARMED) -> Roc:
        """The exact worst-case ROC of an entry; averages have none."""
        row = self.row(group)
        if column not in self.columns:
            raise RiskError(f"there is no column {column!r}; {did_you_mean(column, self.columns)}")
        if group not in self._groups or row.entries[column].auroc is None:
            reason = row.entries[column].reason or "it is an average"
            raise RiskError(f"{group}, {column}: there is no ROC: {reason}")
        worst = _worst(self._scored, arms_of(column, self._groups[group], self._scored.arms, self.columns))
        return exact_roc(self._scored.clean, worst[~np.isnan(worst)])


@dataclass(frozen=True)
class Settings:
    """How everything is measured."""

    tpr: float
    level: float
    resamples: int
    seed_of_draws: int

    def rng(self) -> np.random.Generator:
        """Always from the beginning: all detectors and groups are resampled alike."""
        return np.random.default_rng(self.seed_of_draws)


def detection_table(scored: Scored, detector: str, settings: Settings) -> Table:
    """Measure every group and column once, and put them together."""
    names, groups = columns(scored.arms), grouped(scored.arms)
    adaptive = _adaptive(scored.arms, detector)
    wanted = {arms_of(name, group, scored.arms, names) for group in groups for name in names}
    together = {label: (*_arms_like(label, groups), *arms) for label, arms in adaptive.items()}
    measured = _measured(scored, sorted({*wanted, *adaptive.values(), *together.values()}), settings)

    def entry(arms: Places) -> Entry:
        return _entry(scored, arms, measured.get(arms), settings)

    cells = {(group.label, name): arms_of(name, group, scored.arms, names) for group in groups for name in names}
    rows = [
        _row(group.label, "group", group.norm, {n: entry(cells[group.label, n]) for n in names}) for group in groups
    ]
    averages, overall = _averages(
        groups, names, {key: measured.get(arms) for key, arms in cells.items()}, rows, settings
    )
    return Table(
        columns=names,
        rows=(*rows, *averages),
        worst_group=_least({row.label: row.entries[MULTI_ARMED] for row in rows}),
        adaptive=tuple(
            Survival(label, entry(_arms_like(label, groups)), entry(arms), entry(together[label]))
            for label, arms in adaptive.items()
        ),
        overall=overall,
        _scored=scored,
        _groups={group.label: group for group in groups},
    )


def _measured(scored: Scored, sets: Sequence[Places], settings: Settings) -> dict[Places, Measure]:
    """Of each set with at least one success, each once."""
    worst = {arms: _worst(scored, arms) for arms in sets if arms and scored.success[list(arms)].any()}
    found = measures(
        scored.clean,
        list(worst.values()),
        tpr=settings.tpr,
        level=settings.level,
        resamples=settings.resamples,
        rng=settings.rng(),
    )
    return dict(zip(worst, found, strict=True))


def _worst(scored: Scored, arms: Places) -> Floats:
    return worst_case_scores(scored.score[list(arms)], scored.success[list(arms)])


def _entry(scored: Scored, arms: Places, found: Measure | None, settings: Settings) -> Entry:
    if not arms:
        return Entry(0, 0, 0.0, None, None, None, None, "no arm")
    successes: Integers = scored.success[list(arms)].sum(axis=0)
    if found is None:
        return Entry(len(arms), 0, 0.0, None, None, None, None, "no arm succeeded")
    return Entry(
        n_arms=len(arms),
        n_broken=found.n,
        successes=float(successes.mean()),
        auroc=auroc_estimate(found, settings.level),
        fpr_at_tpr=fpr_estimate(found, settings.level),
        chance_auroc=chance_auroc(successes),
        chance_fpr=chance_fpr(successes, settings.tpr),
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


def _least(entries: Mapping[str, Entry]) -> str | None:
    known = {name: entry.auroc.value for name, entry in entries.items() if entry.auroc is not None}
    return min(known, key=lambda name: known[name]) if known else None


def _marked(entries: Mapping[str, Entry]) -> str | None:
    """The column with the least AUROC, unless all are equal."""
    values = {entry.auroc.value for entry in entries.values() if entry.auroc is not None}
    return None if len(values) == 1 < len(entries) else _least(entries)


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


def _adaptive(arms: Sequence[ScoredArm], detector: str) -> dict[str, Places]:
    """Group -> the adaptive arms of that norm and size against this detector."""
    found: dict[str, list[int]] = {}
    for place, arm in enumerate(arms):
        if arm.family == ADAPTIVE and arm.against == detector:
            found.setdefault(size_of(arm), []).append(place)
    return {label: tuple(places) for label, places in found.items()}


def _arms_like(label: str, groups: Sequence[Group]) -> Places:
    return next((group.arms for group in groups if group.label == label), ())
