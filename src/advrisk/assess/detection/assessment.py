"""Assess the detectors of a run: a table of each in front of each model, the arms that defeat it, and comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np

from advrisk.assess.damage.monte_carlo import alarm_thresholds, on_uncalibrated
from advrisk.assess.damage.walk import detectors_of, find_detector, own_detectors, what_to_score
from advrisk.assess.detection.reading import Attacked, chosen_arms, n_unscored, read_attacked, read_scores
from advrisk.assess.detection.rows import COLUMNS, table_rows
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, did_you_mean, one_or_many
from advrisk.core.plain import InJson
from advrisk.core.tables import Columns, Tabular
from advrisk.core.tables import Row as TableRow
from advrisk.ledger import Ledger
from advrisk.risk.detection.arms import Defeat, defeats
from advrisk.risk.detection.entries import Entry, Scored, Settings
from advrisk.risk.detection.groups import ADAPTIVE, MULTI_ARMED
from advrisk.risk.detection.performance import RESAMPLES, auroc_difference, check_rates
from advrisk.risk.detection.table import DetectionTable, detection_table
from advrisk.risk.monte_carlo import FALSE_ALARMS, Threshold

DEFAULT_THRESHOLD: Mapping[str, float] = {FALSE_ALARMS: 0.05}


@dataclass(frozen=True, eq=False)
class DetectorTable:
    """One detector in front of one model."""

    model: str
    detector: str  # its full name in the ledger
    n: int  # samples
    table: DetectionTable
    defeat: Defeat

    in_json: ClassVar[InJson] = {
        "table": None,
        **{f"table.{name}": name for name in ("n_attackable", "n_arms", "columns", "rows", "worst_group", "adaptive")},
        "table.n_adaptive": "n_arms_knowing",
    }

    @property
    def name(self) -> str:
        """The detector without its digest."""
        return self.detector.rpartition("@")[0]

    @property
    def overall(self) -> Entry:
        """Multi-armed, averaged over groups and norms: the one number of the paper's tables."""
        return self.table.average.entries[MULTI_ARMED]

    @property
    def worst_single(self) -> Mapping[str, Entry]:
        """The single-armed objective with the least average AUROC, with its entry; several if they are equal."""
        return {name: self.table.average.entries[name] for name in self.table.average.worst_single}


@dataclass(frozen=True)
class DetectorPair:
    """Two detectors in front of one model, the better one first."""

    better: str
    worse: str
    difference: Estimate  # of their average multi-armed AUROC, on the same samples

    in_json: ClassVar[InJson] = {"undecided": "undecided"}

    @property
    def undecided(self) -> bool:
        """Whether the paired interval of the difference contains 0."""
        return self.difference.low <= 0 <= self.difference.high


@dataclass(frozen=True, eq=False)
class DetectionAssessment(Tabular):
    """Every detector in front of every model."""

    tables: tuple[DetectorTable, ...]  # by model, the best detector first
    pairs: Mapping[str, tuple[DetectorPair, ...]]  # by model
    tpr: float
    level: float
    threshold: Threshold
    notes: tuple[str, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)  # model -> samples without a verdict from every arm

    columns: ClassVar[Columns] = COLUMNS

    def of(self, model: str, detector: str) -> DetectorTable:
        """The table of a model and a detector, by its name or full name."""
        tables = [one for one in self.tables if one.model == model and detector in (one.name, one.detector)]
        if not tables:
            names = [f"{one.model}, {one.name}" for one in self.tables]
            raise RiskError(f"no table of {model}, {detector}; {did_you_mean(f'{model}, {detector}', names)}")
        return tables[0]

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(dict.fromkeys(one.model for one in self.tables))

    def rows(self) -> list[TableRow]:
        """A row for each entry of each table."""
        return [row for one in self.tables for row in table_rows(one)]


def assess_detection(
    ledger: Ledger,
    *,
    detectors: Sequence[str] | str | None = None,
    models: Sequence[str] | str | None = None,
    arms: Sequence[str] | str | None = None,
    tpr: float = 0.95,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    threshold: Threshold | None = None,
    seed: int = 0,
) -> DetectionAssessment:
    """The multi-armed evaluation of a run's detectors.

    `detectors` are names or full names; by default all that scored the run, the latest of each name. Those that did not
    score everything are left out with a note. `arms` are names or patterns; by default the study's attacks.
    `threshold` decides which arms defeat a detector.
    """
    check_rates(tpr=tpr, level=level, resamples=resamples)
    settings = Settings(tpr, level, resamples, seed)
    limit = DEFAULT_THRESHOLD if threshold is None else threshold
    names, models = _named(ledger, one_or_many(detectors)), one_or_many(models)
    tables: list[DetectorTable] = []
    pairs, left_out, notes, unscored = {}, {}, list[str](), list[str]()
    uncalibrated: dict[str, list[str]] = {}
    for model, chosen in chosen_arms(ledger, one_or_many(arms), models).items():
        attacked = read_attacked(ledger, model, chosen)
        scores = {name: read_scores(ledger, name, attacked) for name in names}
        whole = {name: scored for name, scored in scores.items() if not n_unscored(scored)}
        unscored += [_on_unscored(ledger, name, scores[name], attacked) for name in names if name not in whole]
        if unscored and detectors is not None:
            raise RiskError(unscored[0])
        limits = {}
        for name, scored in whole.items():
            limits[name], lacking = alarm_thresholds(ledger, name, {model: scored.clean}, limit)
            if lacking:
                uncalibrated.setdefault(name, []).append(model)
        of_model = [
            _table(name, scored, attacked, settings, limits[name][model], notes) for name, scored in whole.items()
        ]
        of_model.sort(key=_by_auroc)
        tables += of_model
        pairs[model] = _pairs(of_model, level)
        left_out[model] = attacked.n_unfinished + attacked.n_without_verdict
        notes += _on_left_out(attacked)
    if not tables:
        raise RiskError(unscored[0])
    return DetectionAssessment(
        tables=tuple(tables),
        pairs=pairs,
        tpr=tpr,
        level=level,
        threshold=limit,
        notes=tuple(
            dict.fromkeys(
                [*notes, *on_uncalibrated(ledger, uncalibrated), *(f"Left out: {reason}." for reason in unscored)]
            )
        ),
        left_out=left_out,
    )


def _named(ledger: Ledger, detectors: Sequence[str] | None) -> list[str]:
    if detectors is not None:
        return list(dict.fromkeys(find_detector(ledger, name) for name in detectors))
    scored = detectors_of(ledger)
    own = set(own_detectors(ledger))
    latest = {full.rpartition("@")[0]: full for full in scored if full in own}
    if not latest and scored:
        others = sorted({full.rpartition("@")[0] for full in scored})
        raise RiskError(
            f"the study has no detector now; {', '.join(others)} scored this run before: name one, as in `--detector "
            f"{others[0]}`, or put it back under `detectors` in the study and run it again"
        )
    if not latest:
        raise RiskError("no detector has scored this run; name one under `detectors` in the study and run it again")
    return list(latest.values())


def _on_unscored(ledger: Ledger, detector: str, scored: Scored, attacked: Attacked) -> str:
    return (
        f"{detector} has not scored {counted(n_unscored(scored), 'sample')} of {len(attacked.samples)} of "
        f"{attacked.model}; {what_to_score(ledger, detector)}"
    )


def _table(
    detector: str, scored: Scored, attacked: Attacked, settings: Settings, threshold: float, notes: list[str]
) -> DetectorTable:
    if not scored.success.any():
        notes.append(f"No arm succeeded against {attacked.model}: there is nothing to detect, and no AUROC.")
    tried_arms = [n for n, arm in enumerate(attacked.arms) if arm.family != ADAPTIVE or arm.against == detector]
    notes += _on_unjudged(detector, attacked, tried_arms)
    tried = [place for place in tried_arms if attacked.attacked[place].any()]
    return DetectorTable(
        model=attacked.model,
        detector=detector,
        n=len(attacked.samples),
        table=detection_table(scored, detector, settings),
        defeat=defeats(scored, tried, attacked.passes, attacked.attacked, threshold=threshold, level=settings.level),
    )


def _on_unjudged(detector: str, attacked: Attacked, indices: Sequence[int]) -> list[str]:
    """Notes on arms without a verdict on some samples, which only adaptive arms may lack."""
    n_missing = {attacked.arms[index].label: int((~attacked.judged[index]).sum()) for index in indices}
    return [
        f"{attacked.model}: {label} gave no verdict on {n} of {counted(len(attacked.samples), 'sample')}. What "
        f"survives of {detector.rpartition('@')[0]} refers to the others; see `advrisk status`."
        for label, n in n_missing.items()
        if n
    ]


def _by_auroc(one: DetectorTable) -> tuple[float, str]:
    return -one.overall.auroc.value if one.overall.auroc else np.inf, one.detector


def _pairs(tables: Sequence[DetectorTable], level: float) -> tuple[DetectorPair, ...]:
    return tuple(
        DetectorPair(a.detector, b.detector, auroc_difference(a.table.overall, b.table.overall, level))
        for a, b in combinations(tables, 2)
        if a.table.overall is not None and b.table.overall is not None
    )


def _on_left_out(attacked: Attacked) -> list[str]:
    notes = []
    if attacked.n_unfinished:
        notes.append(f"{attacked.model}: not finished, and left out: {counted(attacked.n_unfinished, 'sample')}.")
    if attacked.n_without_verdict:
        notes.append(
            f"{attacked.model}: left out because an attack gave no verdict: "
            f"{counted(attacked.n_without_verdict, 'sample')}. An error is never counted as robust."
        )
    return notes
