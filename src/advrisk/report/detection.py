"""Detectors in words, for the terminal and the report, and the figure of their worst-case ROC curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorPair, DetectorTable
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.palette import COLOURS, GRAY, Plot, cycled, few_marks, named, plain_label, short_label
from advrisk.core.values import estimate_text
from advrisk.risk.detection.arms import ArmDefeat
from advrisk.risk.detection.entries import Entry
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.roc import Roc
from advrisk.risk.detection.survival import Survival
from advrisk.risk.detection.table import Row, Table

_POINTS = 200  # of a curve
_SINGLE = "dash"
MAX_ARMS = 20  # listed of each detector

ON_AUROC = (
    "AUROC is the probability that an attacked input scores higher than a clean one: 1 is perfect. An attacked input "
    "counts with its least suspicious success of all arms in question. So chance, what random numbers would get, is at "
    "most 0.5: the more arms succeed, the lower. Never compare groups without it."
)

ON_SHARES = (
    "Shares, and successful arms per sample, are of attackable samples: the model classifies a natural error wrongly "
    "without any attack, so no arm is run on it. The paper's count includes natural errors: of all samples, those that "
    "an arm or nature makes the model classify wrongly without an alarm."
)
PAPER = "paper's count, natural errors included"

USUAL = "AUROC, arms that do not know it"  # headings: of the number that ranks detectors, and of what stands beside it
SURVIVES = "what survives arms that know it"
_KNOWN = (
    "AUROC, FPR and chance count the arms that do not know the detector. What survives arms that do is the AUROC of "
    "both together, on the samples that the others of that size broke, of what it was without them."
)
_UNKNOWN = (
    "No arm here knows a detector. An attacker who does should be expected to leave less of it: try adaptive arms."
)


def on_arms(tables: Sequence[DetectorTable]) -> str:
    """How many arms attacked a model, and how many of them know one of the detectors."""
    n_usual, n_knowing = tables[0].table.n_arms, sum(one.table.n_knowing for one in tables)
    told = f"{counted(n_usual, 'arm')} that {'knows' if n_usual == 1 else 'know'} no detector"
    return f"{told}, {n_knowing} that {'knows' if n_knowing == 1 else 'know'} one" if n_knowing else told


def on_samples(one: DetectorTable) -> str:
    """How many samples there are, and how many of them could be attacked."""
    n_attackable = one.table.n_attackable
    whole = counted(one.n, "sample")
    return whole if n_attackable == one.n else f"{whole}, {n_attackable} of them attackable"


def words(found: DetectionAssessment) -> list[str]:
    """What the numbers are, and what is to be known of them."""
    known = any(one.table.adaptive for one in found.tables)
    errors = any(one.table.n_attackable < one.n for one in found.tables)
    sentences = [ON_AUROC, on_fpr(found.tpr), *([ON_SHARES] if errors else []), _KNOWN if known else _UNKNOWN]
    return [*sentences, *found.notes]


def survived(one: DetectorTable) -> list[tuple[str, ...]]:
    """What is left of a detector at each size once arms know it, for a cell of a table: a few short lines for each."""
    return [_survived_in_short(survival) for survival in one.table.adaptive]


def _survived_in_short(survival: Survival) -> tuple[str, ...]:
    without, alone, together = survival.without.auroc, survival.alone, survival.together
    if together.auroc is None or without is None:
        lines = [f"{survival.label}: {survival.together.reason}"]
    else:
        lines = [f"{survival.label}: {together.auroc.value:.3f} of {without.value:.3f}", _uncertain(together)]
    if alone.auroc is None:
        return (*lines, "they broke no sample")
    return (*lines, f"these arms alone: {alone.auroc.value:.3f}", _uncertain(alone))


def _uncertain(entry: Entry) -> str:
    found = entry.auroc
    return "" if found is None else f"[{found.low:.3f}, {found.high:.3f}], chance {entry.chance_auroc:.3f}"


def fpr_name(tpr: float) -> str:
    """The heading of the false-positive rate at a true-positive rate."""
    return f"FPR at {100 * tpr:.4g} % TPR"


def on_fpr(tpr: float) -> str:
    """What the other number is."""
    return (
        "FPR is the share of clean inputs that raise an alarm where the threshold is low enough to detect "
        f"{100 * tpr:.4g} % of the attacked samples, each against all of its successful arms: 0 is perfect."
    )


def on_table(one: DetectorTable) -> list[str]:
    """What is worst for a detector, and which arm gets past it."""
    if one.defeat.arms and not any(arm.n_broken for arm in one.defeat.arms):
        return ["no arm broke a sample: there is nothing to detect"]
    sentences = [*_on_groups(one), *_on_adaptive(one), *_on_defeat(one)]
    return [*sentences, *on_left_out(one.table)]


def on_left_out(table: Table) -> list[str]:
    """Which groups the averages leave out, and why."""
    row = table.average
    if not row.left_out or row.entries[MULTI_ARMED].auroc is None:
        return []
    reasons = "; ".join(f"{label} ({reason})" for label, reason in row.left_out.items())
    n = f"{len(row.left_out)} of {counted(len(table.groups), 'group')}"
    return [f"averages compare columns on the groups that all of them have, and leave out {n}: {reasons}"]


def row_label(row: Row) -> str:
    """The heading of a row: an average that leaves out groups says of how many it is made."""
    if not row.left_out:
        return row.label
    return f"{row.label} of {len(row.groups)} of {len(row.groups) + len(row.left_out)} groups"


def _on_groups(one: DetectorTable) -> list[str]:
    table, sentences = one.table, []
    if one.overall.auroc is None:
        return ["no arm of the groups broke a sample: of these there is no AUROC"]
    if table.worst_group is not None:
        entry = table.row(table.worst_group).entries[MULTI_ARMED]
        if entry.auroc is not None:
            sentences.append(
                f"worst group, least above chance: {table.worst_group}, AUROC {entry.auroc}, chance "
                f"{entry.chance_auroc:.3f}, {counted(entry.n_arms, 'arm')}"
            )
    if one.worst_single:
        (name, single), *others = one.worst_single.items()
        as_low = f"; as low: {', '.join(other for other, _ in others)}" if others else ""
        sentences.append(
            f"worst single-armed objective: {name}, AUROC {single.auroc} on average, chance "
            f"{single.chance_auroc:.3f}{as_low}"
        )
    return sentences


def _on_adaptive(one: DetectorTable) -> list[str]:
    return [
        f"attacked by arms that know it, at {survival.label}: {'; '.join(_survived(survival))}"
        for survival in one.table.adaptive
    ]


def _survived(survival: Survival) -> list[str]:
    """Two numbers on the samples that other arms broke, one on those that the adaptive arms broke."""
    without, alone, together = survival.without, survival.alone, survival.together
    told = []
    if together.auroc is not None and without.auroc is not None:
        told.append(
            f"AUROC {together.auroc.value:.3f} of {without.auroc.value:.3f} survives on the "
            f"{counted(together.n_broken, 'sample')} that other arms broke (chance {together.chance_auroc:.3f})"
        )
    if alone.auroc is None:
        return [*told, "they broke no sample"]
    own = f"AUROC {alone.auroc.value:.3f} on the {counted(alone.n_broken, 'sample')} that they broke"
    return [*told, f"{own} (chance {alone.chance_auroc:.3f})"]


def _on_defeat(one: DetectorTable) -> list[str]:
    defeat = one.defeat
    if not defeat.arms:
        return []
    where = f"at a threshold of {defeat.threshold:.4g} ({estimate_text(defeat.false_alarms, 'share')} false alarms)"
    if defeat.most_often is None:
        return [f"{where} no arm gets past it"]
    sentences = [f"{where} {_how_often(one)}; most often {_past(defeat.most_often)}"]
    if defeat.cheapest is not None and defeat.cheapest.passes_per_unseen is not None:
        sentences.append(
            f"cheapest: {_past(defeat.cheapest)}, at {defeat.cheapest.passes_per_unseen:,.3g} passes for each"
        )
    return sentences


def _how_often(one: DetectorTable) -> str:
    unseen, paper = one.defeat.unseen, one.defeat.unseen_paper
    told = f"some arm of {len(one.defeat.arms)} gets past it"
    if unseen is None or paper is None:
        return told
    told += f" on {estimate_text(unseen, 'share')} of {counted(unseen.n, 'attackable sample')}"
    return told if paper.n == unseen.n else f"{told} ({PAPER}: {percent_text(paper.value, 1)} of {paper.n})"


def _past(arm: ArmDefeat) -> str:
    return f"{arm.arm} ({percent_text(arm.unseen.value, 1)})"


def on_pair(pair: DetectorPair) -> str:
    """Which of two detectors is better, or that the samples do not tell."""
    better, worse = (name.rpartition("@")[0] for name in (pair.better, pair.worse))
    told = "undecided" if pair.undecided else "decided"
    sign = "=" if pair.difference.value == 0 else ">"
    return f"{better} {sign} {worse}: difference of AUROC {pair.difference}, {told}"


def detection_content(found: DetectionAssessment | None, reason: str = "") -> dict[str, Any]:
    """What the template shows of detectors, or why it cannot."""
    choices = {} if found is None else {model: roc_choices(found, model) for model in found.models}
    figures = {one.figure: roc_curves(found, model, one.group) for model, of in choices.items() for one in of if found}
    return {
        "detection": found,
        "undetected": reason,
        "detection_figures": figures,
        "roc_choices": choices,
        "on_samples": on_samples,
        "row_label": row_label,
        "paper_count": PAPER,
        "detection_words": [] if found is None else words(found),
        "on_arms": on_arms,
        "survived": survived,
        "usual_auroc": USUAL,
        "survives": SURVIVES,
        "on_table": on_table,
        "on_pair": on_pair,
        "multi_armed": MULTI_ARMED,
        "fpr_name": fpr_name,
        "max_defeats": MAX_ARMS,
    }


@dataclass(frozen=True)
class RocChoice:
    """The figure of one group."""

    figure: str
    label: str
    group: str


def roc_choices(found: DetectionAssessment, model: str) -> list[RocChoice]:
    """Every group with a ROC; the one that is worst for the best detector first."""
    tables = [one for one in found.tables if one.model == model]
    worst: dict[str, list[str]] = {}
    for one in tables:
        if one.table.worst_group is not None:
            worst.setdefault(one.table.worst_group, []).append(one.name)
    drawn = [label for label in tables[0].table.groups if tables[0].table.row(label).entries[MULTI_ARMED].auroc]
    return [
        RocChoice(
            f"roc {model} {label}",
            f"{label} (worst for {', '.join(worst[label])})" if label in worst else label,
            label,
        )
        for label in dict.fromkeys([*(label for label in worst if label in drawn), *drawn])
    ]


def roc_curves(found: DetectionAssessment, model: str, group: str) -> Plot:
    """Of each detector in one group: multi-armed, and by the one objective that is worst for it; and chance."""
    tables = [one for one in found.tables if one.model == model]
    lines = [_chance(group, tables[0].table)]  # the same for all detectors: arms and successes are
    for place, one in enumerate(tables):
        colour = cycled(COLOURS, place)
        curve = _line(one.name, thinned(one.table.roc(group)), {"color": colour, "width": 2.5})
        lines.append(curve | {"mode": "lines+markers", "marker": few_marks(place)})
        for single in one.table.row(group).worst_single[:1]:
            line = {"color": colour, "width": 1.5, "dash": _SINGLE}
            lines.append(_line(f"{one.name}, {single} alone", thinned(one.table.roc(group, single)), line))
    return {
        "data": lines,
        "layout": {
            "title": {"text": f"{short_label(model)}, {plain_label(group)}", "x": 0.02, "font": {"size": 15}},
            "xaxis": {
                "title": {"text": "clean inputs that raise an alarm"},
                "range": [-0.01, 1.01],
                "tickformat": ".0%",
            },
            "yaxis": {"title": {"text": "attacked samples detected"}, "range": [-0.01, 1.02], "tickformat": ".0%"},
            "legend": {"orientation": "h", "y": -0.22, "yanchor": "top"},
            "height": 420 + 22 * len(lines),
        },
    }


def _chance(group: str, table: Table) -> Plot:
    """What random numbers would get against all arms of a group: below the diagonal, and the lower the more arms."""
    fpr, tpr = (rates.tolist() for rates in table.chance_roc(group))
    n_arms = table.row(group).entries[MULTI_ARMED].n_arms
    return _line(f"chance, {counted(n_arms, 'arm')}", (fpr, tpr), {"color": GRAY, "width": 1.5, "dash": "dot"})


def _line(name: str, rates: tuple[list[float], list[float]], line: dict[str, Any]) -> Plot:
    fpr, tpr = ([round(rate, 5) for rate in one] for one in rates)
    return {
        "type": "scatter",
        "mode": "lines",
        **named(name),
        "x": fpr,
        "y": tpr,
        "line": line,
        "hovertemplate": f"{plain_label(name)}<br>%{{y:.1%}} detected, %{{x:.1%}} false alarms<extra></extra>",
    }


def thinned(roc: Roc) -> tuple[list[float], list[float]]:
    """Both rates at some hundred points: corners of the curve, evenly along it; the first and the last among them."""
    moved = np.abs(np.diff(roc.fpr, prepend=0)) + np.abs(np.diff(roc.tpr, prepend=0))
    along = np.cumsum(moved)
    places = np.searchsorted(along, np.linspace(0, along[-1], _POINTS)).clip(0, along.size - 1)
    kept = np.unique([0, *places, along.size - 1])
    return roc.fpr[kept].tolist(), roc.tpr[kept].tolist()
