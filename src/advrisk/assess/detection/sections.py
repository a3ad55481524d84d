"""Sections of detectors: the performance of each against all arms together, and the arms that evade it."""

from collections.abc import Iterator, Mapping, Sequence

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorTable
from advrisk.assess.detection.details import ON_GROUPS, PAPER, detector_group, fpr_name, row_label, successes_group
from advrisk.assess.detection.figures import roc_figures
from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import counted, few, listed
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.sections import Cell, Column, Headline, Section, Summary, Table, Text, Value
from advrisk.core.values import estimate_text, number_text
from advrisk.risk.detection.adaptive import AdaptiveEffect
from advrisk.risk.detection.arms import ArmDefeat
from advrisk.risk.detection.entries import Entry
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.monte_carlo import FALSE_ALARMS

AUROC = (
    "AUROC is the probability that an attacked input scores higher than a clean one: 1 is perfect. An attacked input "
    "counts with its least suspicious success of all arms in question."
)
CHANCE = (
    "Chance is what random numbers would get: an AUROC of at most 0.5, lower the more arms succeed. Never compare "
    "groups or models without it."
)
_SHARES = (
    "Shares, and successful arms per sample, are of attackable samples: the model classifies a natural error wrongly "
    "without any attack, so no arm is run on it. The paper's count includes natural errors: of all samples, those that "
    "an arm or nature makes the model classify wrongly without an alarm."
)
_UNKNOWN = "No arm here knows a detector. Expect a lower AUROC against an attacker who does: try adaptive arms."
_ON_CURVES = (
    "ROC curves: how many broken samples are detected at each rate of false alarms, in one group of "
    "arms; further up and left is better. Solid: against all arms of the group together; dashed: against the worst "
    "single objective; dotted: chance, below the diagonal where several arms succeed. The first group is the worst "
    "one of the best detector, least above its chance.",
)
_ON_SURVIVAL = (
    "Without them and together: on the samples that the other arms of that size broke.",
    "Alone: on the samples that the arms that know the detector broke.",
)


def sections(assessment: DetectionAssessment, models: Sequence[str] = ()) -> Iterator[Section]:
    """Every detector in front of every model, the best first; then every group and arm."""
    del models  # colours tell detectors apart
    yield Headline(headline(assessment))
    yield Summary("sure", tuple(few(list(_sure(assessment)), "more detectors: see the section on them.")))
    yield Summary("drivers", tuple(few(list(_drivers(assessment)), "more: see the section on detectors.")))
    has_adaptive = any(one.table.adaptive for one in assessment.tables)
    if notes := (*([] if has_adaptive else [_UNKNOWN]), *assessment.notes):
        yield Text(notes)
    yield Text(_how(assessment), how=True)
    yield _overview(assessment)
    if has_adaptive:
        yield _survival(assessment)
    if any(one.table.n_attackable < one.n for one in assessment.tables):
        yield Text((_SHARES,), how=True)
    yield _defeats(assessment)
    if any(assessment.pairs.values()):
        yield _pairs(assessment)
    if figures := tuple(roc_figures(assessment)):
        yield Text(_ON_CURVES, how=True)
        yield from figures
    yield Text(ON_GROUPS, how=True)
    for one in assessment.tables:
        yield detector_group(one, assessment.tpr)
    for model in assessment.models:
        yield successes_group(next(one for one in assessment.tables if one.model == model))


def quantities(assessment: DetectionAssessment) -> Iterator[NamedEstimate]:
    """AUROC and false-positive rate of every detector in front of every model."""
    alarms = f"false alarms at {percent_text(assessment.tpr)} detected"
    for one in assessment.tables:
        own = one.overall
        for name, what, estimate, chance in (
            ("auroc", "AUROC", own.auroc, own.chance_auroc),
            ("fpr", alarms, own.fpr_at_tpr, own.chance_fpr),
        ):
            if estimate is not None:
                note = "" if chance is None else f"chance gives {chance:.3f}"
                text = f"{what} of {one.name} against all attacks"
                yield NamedEstimate(name, one.model, estimate, of=one.name, text=text, note=note, unit="number")


def headline(assessment: DetectionAssessment) -> str:
    """The best detector in front of each model, with the AUROC of chance."""
    measured = [
        f"{one.name} in front of {one.model}, AUROC {one.overall.auroc} (chance {one.overall.chance_auroc:.3f})"
        for one in _best(assessment)
        if one.overall.auroc is not None
    ]
    if not measured:
        return "No detector has an AUROC: no arm of the groups broke a sample."
    several = len({one.detector for one in assessment.tables}) > 1
    lead = "Best against" if several else "Against"
    return f"{lead} all arms that do not know it: {'; '.join(few(measured, 'more models'))}."


def on_model(tables: Sequence[DetectorTable]) -> str:
    """The number of samples of a model, of attackable ones, and of arms that know one of its detectors."""
    first = tables[0]
    n_attackable, n_usual = first.table.n_attackable, first.table.n_arms
    n_knowing = sum(one.table.n_adaptive for one in tables)
    some = "" if n_attackable == first.n else f", {n_attackable} of them attackable"
    knowing = f", {n_knowing} that {'knows' if n_knowing == 1 else 'know'} one" if n_knowing else ""
    usual = f"{counted(n_usual, 'arm')} that {'knows' if n_usual == 1 else 'know'} no detector"
    return f"{first.model}: {counted(first.n, 'sample')}{some}; {usual}{knowing}."


def on_left_out(one: DetectorTable) -> list[str]:
    """The groups that the averages of a model leave out, and why."""
    row = one.table.average
    if not row.left_out or row.entries[MULTI_ARMED].auroc is None:
        return []
    reasons = "; ".join(f"{label} ({reason})" for label, reason in row.left_out.items())
    n = f"{len(row.left_out)} of {counted(len(one.table.groups), 'group')}"
    return [f"{one.model}: averages are over the groups that every objective has, and leave out {n}: {reasons}."]


def _how(assessment: DetectionAssessment) -> tuple[str, ...]:
    return (
        "Does a detector detect an attack when the attacker may choose among all arms that do not know it? "
        f"{AUROC} Averages are over the sizes of each norm, then over the norms; brackets hold "
        f"{level_text(assessment.level)} intervals.",
        "FPR is the share of clean inputs that raise an alarm where the threshold is low enough to detect "
        f"{100 * assessment.tpr:.4g} % of the attacked samples, each against all of its successful arms: 0 is perfect.",
    )


def _best(assessment: DetectionAssessment) -> list[DetectorTable]:
    return [next(one for one in assessment.tables if one.model == model) for model in assessment.models]


def _sure(assessment: DetectionAssessment) -> Iterator[str]:
    for one in _best(assessment):
        if one.overall.auroc is not None:
            yield (
                f"Detector {one.name} in front of {one.model}: AUROC {one.overall.auroc} against the arms of each size "
                f"together, averaged over sizes and norms; arms that know it are left out "
                f"(chance: {one.overall.chance_auroc:.3f})."
            )


def _drivers(assessment: DetectionAssessment) -> Iterator[str]:
    for one in assessment.tables:
        if (arm := one.defeat.most_often) is not None:
            where = f"{one.name} in front of {one.model}"
            yield f"{arm.arm} gets past {where} most often: {estimate_text(arm.unseen, 'share')} of attackable samples."


# The tables that are read first


def _overview(assessment: DetectionAssessment) -> Table:
    columns = (
        Column("detector"),
        Column("model"),
        Column("AUROC", "number"),
        Column("chance", "number"),
        Column("arms", "count"),
        Column(fpr_name(assessment.tpr), "share"),
        Column("FPR by chance", "share", detail=True),
        Column("worst group"),
        Column("worst objective alone", detail=True),
    )
    rows = tuple(
        (
            *(one.name, one.model, _average(one), one.overall.chance_auroc, one.overall.n_arms),
            *(one.overall.fpr_at_tpr, one.overall.chance_fpr, _worst_group(one), _worst_objective(one)),
        )
        for one in assessment.tables
    )
    counts = [on_model([one for one in assessment.tables if one.model == model]) for model in assessment.models]
    left_out = [sentence for one in _best(assessment) for sentence in on_left_out(one)]
    title = "Each detector against all arms that do not know it"
    return Table(title, columns, rows, (CHANCE, *counts, *left_out))


def _average(one: DetectorTable) -> Cell:
    average = one.table.average
    if one.overall.auroc is None:
        return Cell(None, (one.overall.reason,))
    return Cell(one.overall.auroc, (row_label(average),) if average.left_out else ())


def _worst_group(one: DetectorTable) -> Value:
    if one.table.worst_group is None:
        return None
    entry = one.table.row(one.table.worst_group).entries[MULTI_ARMED]
    auroc = None if entry.auroc is None else entry.auroc.value
    return Cell(one.table.worst_group, (f"AUROC {number_text(auroc, 'number')}", _by_chance(entry)))


def _worst_objective(one: DetectorTable) -> Value:
    values = [entry.auroc.value for entry in one.worst_single.values() if entry.auroc is not None]
    return Cell(", ".join(one.worst_single), (f"AUROC {number_text(values[0], 'number')}",)) if values else None


def _by_chance(entry: Entry) -> str:
    return f"chance {number_text(entry.chance_auroc, 'number')}"


def _survival(assessment: DetectionAssessment) -> Table:
    columns = (
        *(Column("detector"), Column("model"), Column("size")),
        *(Column(name, "number") for name in ("without them", "together", "alone")),
    )
    rows = tuple((one.name, one.model, *_survived(each)) for one in assessment.tables for each in one.table.adaptive)
    spared = [f"{one.name} in front of {one.model}" for one in assessment.tables if not one.table.adaptive]
    notes = (*_ON_SURVIVAL, *([f"No arm knows {listed(spared)}."] if spared else []))
    return Table("What survives arms that know the detector: AUROC", columns, rows, notes)


def _survived(survival: AdaptiveEffect) -> tuple[Value, ...]:
    return survival.label, *(_auroc(one) for one in (survival.without, survival.together, survival.alone))


def _auroc(entry: Entry) -> Cell:
    """An AUROC with that of chance, the number of arms and of broken samples."""
    if entry.auroc is None:
        return Cell(None, (entry.reason,))
    return Cell(entry.auroc, (_by_chance(entry), f"{counted(entry.n_arms, 'arm')}, {entry.n_broken} broken"))


def _defeats(assessment: DetectionAssessment) -> Table:
    columns = (
        *(Column("detector"), Column("model"), Column("some arm gets past", "share")),
        *(Column("arms tried", "count"), Column("most often"), Column("cheapest", detail=True)),
        Column(PAPER, "share", detail=True),
        *(Column("threshold", "magnitude", detail=True), Column("false alarms", "share")),
    )
    rows = tuple(
        (
            *(one.name, one.model, one.defeat.unseen, one.defeat.n_arms),
            *(_past(one.defeat.most_often), _past(one.defeat.cheapest), one.defeat.unseen_paper),
            *(one.defeat.threshold, one.defeat.false_alarms),
        )
        for one in assessment.tables
    )
    return Table("Which arms get past, at a threshold", columns, rows, (_on_threshold(assessment),), lead=True)


def _past(arm: ArmDefeat | None) -> Value:
    if arm is None:
        return "none"
    passes = [f"{number_text(arm.passes_per_unseen, 'magnitude')} passes each"] if arm.passes_per_unseen else []
    return Cell(arm.arm, (number_text(arm.unseen.value, "share"), *passes))


def _on_threshold(assessment: DetectionAssessment) -> str:
    limit = assessment.threshold
    if isinstance(limit, Mapping):
        aim = f"the threshold, set for {level_text(limit[FALSE_ALARMS])} false alarms"
    else:
        aim = f"{limit:.4g}"
    return f"An alarm is a score above {aim}. Shares are of attackable samples."


def _pairs(assessment: DetectionAssessment) -> Table:
    columns = (
        *(Column("detector"), Column("compared with"), Column("model")),
        *(Column("AUROC higher by", "number"), Column("verdict")),
    )
    rows = tuple(
        (
            *(_bare(pair.better), _bare(pair.worse), model),
            *(pair.difference, "undecided" if pair.undecided else "decided"),
        )
        for model, pairs in assessment.pairs.items()
        for pair in pairs
    )
    return Table("Pairwise comparison on the same samples", columns, rows)


def _bare(detector: str) -> str:
    """A detector without its digest."""
    return detector.rpartition("@")[0]
