"""Detectors in words, for the terminal and the report, and the figure of their worst-case ROC curves."""

from typing import Any

import numpy as np

from advrisk.core.names import counted
from advrisk.report.figures import COLOURS, Figure, cycled, plain_label, short_label
from advrisk.report.summary import percent
from advrisk.risk.detection.arms import ArmDefeat
from advrisk.risk.detection.assessment import DetectionAssessment, DetectorPair, DetectorTable
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.roc import Roc
from advrisk.risk.detection.survival import Survival

_POINTS = 400  # of a curve
_SINGLE = "dash"
MAX_ARMS = 20  # listed of each detector

ON_AUROC = (
    "AUROC is the probability that an attacked input scores higher than a clean one: 1 is perfect. An attacked input "
    "counts with its least suspicious success of all arms in question. So chance, what random numbers would get, is at "
    "most 0.5: the more arms succeed, the lower. Never compare groups without it."
)


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
    n_left_out = one.table.average.n_left_out[MULTI_ARMED]
    if n_left_out and one.overall.auroc is not None:
        sentences.append(f"{counted(n_left_out, 'group')} without a success, left out of the averages")
    return sentences


def _on_groups(one: DetectorTable) -> list[str]:
    table, sentences = one.table, []
    if one.overall.auroc is None:
        return ["no arm of the groups broke a sample: of these there is no AUROC"]
    if table.worst_group is not None:
        entry = table.row(table.worst_group).entries[MULTI_ARMED]
        if entry.auroc is not None:
            sentences.append(f"worst group: {table.worst_group}, AUROC {entry.auroc}, chance {entry.chance_auroc:.3f}")
    if one.worst_single is not None:
        name, single = one.worst_single
        sentences.append(
            f"worst single-armed objective: {name}, AUROC {single.auroc} on average, chance {single.chance_auroc:.3f}"
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
    where = f"at a threshold of {defeat.threshold:.4g} ({percent(defeat.false_alarms)} false alarms)"
    if defeat.most_often is None:
        return [f"{where} no arm gets past it"]
    how_often = f" on {percent(defeat.unseen)} of the samples" if defeat.unseen else ""
    sentences = [f"{where} some arm gets past it{how_often}; most often {_past(defeat.most_often)}"]
    if defeat.cheapest is not None and defeat.cheapest.passes_per_unseen is not None:
        sentences.append(
            f"cheapest: {_past(defeat.cheapest)}, at {defeat.cheapest.passes_per_unseen:,.3g} passes for each"
        )
    return sentences


def _past(arm: ArmDefeat) -> str:
    return f"{arm.arm} ({arm.unseen.value:.1%})"


def on_pair(pair: DetectorPair) -> str:
    """Which of two detectors is better, or that the samples do not tell."""
    better, worse = (name.rpartition("@")[0] for name in (pair.better, pair.worse))
    told = "undecided" if pair.undecided else "decided"
    return f"{better} > {worse}: difference of AUROC {pair.difference}, {told}"


def detection_content(found: DetectionAssessment | None, reason: str = "") -> dict[str, Any]:
    """What the template shows of detectors, or why it cannot."""
    figures = {} if found is None else {f"roc {model}": roc_curves(found, model) for model in found.models}
    return {
        "detection": found,
        "undetected": reason,
        "detection_figures": figures,
        "detection_words": [] if found is None else [ON_AUROC, on_fpr(found.tpr), *found.notes],
        "on_table": on_table,
        "on_pair": on_pair,
        "multi_armed": MULTI_ARMED,
        "fpr_name": fpr_name,
        "max_defeats": MAX_ARMS,
    }


def roc_curves(found: DetectionAssessment, model: str) -> Figure:
    """Of each detector, in its worst group: multi-armed, and by the one objective that is worst for it."""
    tables = [one for one in found.tables if one.model == model]
    lines: list[Figure] = []
    for place, one in enumerate(tables):
        group, colour = one.table.worst_group, cycled(COLOURS, place)
        if group is None:
            continue
        lines.append(_line(f"{one.name}, {group}", one.table.roc(group), {"color": colour, "width": 2.5}))
        single = one.table.row(group).worst_single
        if single is not None:
            line = {"color": colour, "width": 1.5, "dash": _SINGLE}
            lines.append(_line(f"{one.name}, {single} alone", one.table.roc(group, single), line))
    diagonal = {
        "type": "scatter",
        "mode": "lines",
        "name": "no detector",
        "x": [0, 1],
        "y": [0, 1],
        "line": {"color": "#888888", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return {
        "data": [diagonal, *lines],
        "layout": {
            "title": {"text": short_label(model), "x": 0.02, "font": {"size": 15}},
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


def _line(name: str, roc: Roc, line: dict[str, Any]) -> Figure:
    fpr, tpr = thinned(roc)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": short_label(name),
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
