"""The worst-case ROC curves of detectors, one figure for each model and group of arms."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorTable
from advrisk.core.names import counted
from advrisk.core.palette import COLOURS, GRAY, Plot, cycled, few_marks, named, plain_label, short_label
from advrisk.core.sections import Alternatives, Figure
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.roc import Roc
from advrisk.risk.detection.table import DetectionTable

_POINTS = 200  # of a curve
_SINGLE = "dash"


def roc_figures(assessment: DetectionAssessment) -> Iterator[Alternatives]:
    """Each model's groups, as alternatives of one figure."""
    of_model = {model: [one for one in assessment.tables if one.model == model] for model in assessment.models}
    drawn = [(model, group) for model, tables in of_model.items() for group in _groups(tables)]
    figures = {
        (model, group): Figure(
            f"ROC, {model}, {group}",
            roc_curves(of_model[model], group),
            f"Worst-case ROC curves of the detectors in front of {model}, one group at a time.",
        )
        for model, group in drawn
    }
    for model in assessment.models:
        if own := tuple(figure for (of, _), figure in figures.items() if of == model):
            yield Alternatives("Group", own)


def _groups(tables: Sequence[DetectorTable]) -> list[str]:
    """Every group with a ROC; the worst group of the best detector first."""
    table = tables[0].table
    drawn = [label for label in table.groups if table.row(label).entries[MULTI_ARMED].auroc]
    worst = [one.table.worst_group for one in tables]
    return list(dict.fromkeys([*(label for label in worst if label in drawn), *drawn]))


def roc_curves(tables: Sequence[DetectorTable], group: str) -> Plot:
    """The ROC of each detector of one model, multi-armed and by its worst single objective, and of chance."""
    lines = [_chance(group, tables[0].table)]  # the same for all detectors, as arms and successes are
    for index, one in enumerate(tables):
        colour = cycled(COLOURS, index)
        curve = _line(one.name, thinned(one.table.roc(group)), {"color": colour, "width": 2.5})
        lines.append(curve | {"mode": "lines+markers", "marker": few_marks(index)})
        for single in one.table.row(group).worst_single[:1]:
            line = {"color": colour, "width": 1.5, "dash": _SINGLE}
            lines.append(_line(f"{one.name}, {single} alone", thinned(one.table.roc(group, single)), line))
    title = f"{short_label(tables[0].model)}, {plain_label(group)}"
    return {
        "data": lines,
        "layout": {
            "title": {"text": title, "x": 0.02, "font": {"size": 15}},
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


def _chance(group: str, table: DetectionTable) -> Plot:
    """The ROC of random scores against all arms of a group: below the diagonal, and lower with more arms."""
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
    """Both rates at up to `_POINTS` corners, evenly along the curve, including the first and the last."""
    moved = np.abs(np.diff(roc.fpr, prepend=0)) + np.abs(np.diff(roc.tpr, prepend=0))
    along = np.cumsum(moved)
    indices = np.searchsorted(along, np.linspace(0, along[-1], _POINTS)).clip(0, along.size - 1)
    kept = np.unique([0, *indices, along.size - 1])
    return roc.fpr[kept].tolist(), roc.tpr[kept].tolist()
