"""Figures of key risk indicators: bars with intervals, grouped bars, the heat map of arms, and sunbursts."""

import math
import re
from collections.abc import Sequence
from typing import Any

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import Bounds, loss_interval, loss_text
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import percent_text
from advrisk.core.palette import (
    COLOURS,
    PATTERNS,
    Places,
    Plot,
    cycled,
    heat_map_room,
    named,
    places_of,
    plain_label,
    short_label,
    upper_ticks,
    wrapped_label,
)
from advrisk.core.values import number_text
from advrisk.risk.indicators.comparison import LEAST, ScenarioResult
from advrisk.risk.indicators.tensor import KINDS
from advrisk.risk.indicators.tree import Indicator

INK = "ink"  # the page replaces it by its colour of text, light or dark
CLEAN_GRAY = "#9AA3AE"
_VERDICTS = (  # verdict, text beside the bar, hatching
    ("least risk", "least risk", ""),
    ("undecided", "undecided", "/"),
    ("more risk than another", "more risk", ""),
    ("the only model", "", ""),
)
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
_SUNBURST_UNITS = 10**9  # of the whole: integers, so that parts sum to it exactly
_FINE = 0.05  # risks below it are shown with a decimal
_DARK = 0.5  # a background darker than this gets white letters


def branch_bars(result: ScenarioResult, path: str = "", *, places: Places | None = None) -> Plot:
    """The risk of every model given a branch (the whole scenario, unless it is named), least overall risk at the top.

    Colours identify the models; the verdict is printed beside each bar.
    """
    compared = result.branches[path]
    names = [one.model for one in result.models]
    places = places_of(names, places)
    rows = [(name, compared.estimates[name], verdict_class(compared.verdict(name))) for name in names]
    hatching = {word: shape for word, _, shape in _VERDICTS}
    traces = []
    for name, estimate, verdict in rows:  # one by one: plotly cannot hatch bars of several colours in one trace
        pattern = {"shape": hatching[verdict], "fillmode": "overlay", "fgcolor": "#ffffff"}
        marker = {"color": cycled(COLOURS, places[name]), "pattern": pattern}
        traces.append(_bar(verdict, [(name, estimate)], result.bounds, marker) | {"showlegend": False})
    return {
        "data": [*traces, _values_beside(rows, result.bounds)],
        "layout": {
            "barmode": "overlay",
            "xaxis": _loss_axis(result, [estimate for _, estimate, _ in rows], room=1.5),
            "yaxis": _names_axis(names),
            "height": 100 + 34 * len(names),
            "margin": {"l": 20, "t": 16},
        },
    }


def verdict_class(verdict: str) -> str:
    """The class of a verdict, one of four."""
    if verdict == LEAST:
        return _VERDICTS[0][0]
    if verdict.startswith("undecided"):
        return _VERDICTS[1][0]
    return _VERDICTS[2][0] if verdict.startswith("more risk") else _VERDICTS[3][0]


def grouped_bars(result: ScenarioResult, path: str = "", *, places: Places | None = None) -> Plot:
    """The risk given each child of a branch, models side by side."""
    node = result.models[0].tree.at(path)
    children = [child.path for child in node.children]
    shown = {child.path: f"{child.name} ({number_text(child.weight, 'weight')})" for child in node.children}
    traces = []
    places = places_of([one.model for one in result.models], places)
    for one in result.models:
        place = places[one.model]
        own = [(child, result.branches[child].estimates[one.model]) for child in children]
        pattern = {"shape": cycled(PATTERNS, place), "fillmode": "overlay", "fgcolor": "#ffffff"}
        bar = _bar(one.model, own, result.bounds, {"color": cycled(COLOURS, place), "pattern": pattern})
        traces.append(bar | {"error_x": bar["error_x"] | {"thickness": 1, "width": 2}})
    estimates = [result.branches[child].estimates[one.model] for child in children for one in result.models]
    thick = 20 if len(result.models) < 5 else 13
    return {
        "data": traces,
        "layout": {
            "barmode": "group",
            "bargap": 0.25,
            "xaxis": _loss_axis(result, estimates, room=1.05),
            "yaxis": _names_axis(children, [shown[child] for child in children]),
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
            "height": 150 + 10 * len(traces) + len(children) * (24 + thick * len(traces)),
            "margin": {"l": 20, "t": 44},
        },
    }


def arm_losses(assessment: IndicatorAssessment, loss: str, bounds: Bounds) -> Plot:
    """The mean loss of every arm for every model, as a heat map; least overall risk first."""
    models = [one.model for one in assessment.results[0].models]
    by_model = assessment.arms[loss]
    arms = ordered_arms(assessment, loss)
    grid = [[_value(by_model[model].get(arm)) for model in models] for arm in arms]
    values = [cell for row in grid for cell in row if cell is not None]
    low, high = bounds if all(map(math.isfinite, bounds)) else (min(values, default=0.0), max(values, default=1.0))
    digits = ".0%" if bounds == (0.0, 1.0) else ".3~g"
    shown = [["" if cell is None else _cell_text(cell, bounds) for cell in row] for row in grid]
    hover = [[_arm_hover(arm, model, by_model[model].get(arm), bounds) for model in models] for arm in arms]
    return {
        "data": [
            {
                "type": "heatmap",
                "x": models,
                "y": arms,
                "z": grid,
                "zmin": low,
                "zmax": high if bounds == (0.0, 1.0) else max(values, default=high),
                "colorscale": "Cividis",
                "text": shown,
                "texttemplate": "%{text}",
                "textfont": {"size": 12},
                "xgap": 1,
                "ygap": 1,
                "colorbar": {"title": {"text": "mean loss", "side": "right"}, "tickformat": digits, "thickness": 12},
                **heat_map_room(arms),
                "hovertext": hover,
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        ],
        "layout": {
            "xaxis": upper_ticks(models),
            "yaxis": {
                "autorange": "reversed",
                "type": "category",
                "automargin": True,
                "tickvals": arms,
                "ticktext": [short_label(arm) for arm in arms],
            },
            "height": 150 + 24 * len(arms),
            "margin": {"l": 20, "t": 60, "b": 20},
        },
    }


def ordered_arms(assessment: IndicatorAssessment, loss: str) -> list[str]:
    """Clean inputs first, then corruptions by cause and family, then attacks."""
    arms = dict.fromkeys(arm for of_model in assessment.arms[loss].values() for arm in of_model)
    if assessment.tensors is None:
        return list(arms)
    tensor = next(iter(assessment.tensors.values()))
    facts = dict(zip(tensor.arms, zip(tensor.kind, tensor.cause, tensor.family, strict=True), strict=True))
    order = {arm: (KINDS.index(kind), cause, family) for arm, (kind, cause, family) in facts.items()}
    return sorted(arms, key=lambda arm: (order.get(arm, (len(KINDS), "", "")), _natural(arm)))


def _natural(name: str) -> list[tuple[float, str]]:
    """Sort key that orders numbers in a name by size."""
    return [(float(part), "") if index % 2 else (0.0, part) for index, part in enumerate(_NUMBER.split(name))]


def sunburst(tree: Indicator, bounds: Bounds) -> Plot | None:
    """The contribution of every branch to the risk of one model; None if the loss is zero or partly negative.

    Slices are integers, summed from the leaves up, so that the slices of each ring add up exactly.
    """
    whole = sum(one.contribution.value for one in tree.leaves())
    if whole <= 0 or any(one.contribution.value < 0 for one in tree.leaves()):
        return None
    units = {one.path: round(_SUNBURST_UNITS * one.contribution.value / whole) for one in tree.leaves()}
    slices = [one for one in tree.walk() if _units(one, units)]
    colours = _branch_colours(tree)
    fills = ["rgba(0,0,0,0)" if one is tree else colours[_first(one.path, tree)] for one in slices]
    return {
        "data": [
            {
                "type": "sunburst",
                "branchvalues": "total",
                "ids": [one.path or "/" for one in slices],
                "parents": ["" if one is tree else _parent(one.path, tree) or "/" for one in slices],
                "labels": [wrapped_label(one.name, 14) for one in slices],
                "values": [_units(one, units) for one in slices],
                "text": [_slice_text(one, whole, bounds, root=one is tree) for one in slices],
                "hovertext": [_slice_hover(one, whole, bounds) for one in slices],
                "textinfo": "text",
                "hoverinfo": "text",
                "insidetextorientation": "auto",
                "insidetextfont": {"color": [INK if fill.startswith("rgba") else _letters(fill) for fill in fills]},
                "marker": {"colors": fills, "line": {"color": "paper", "width": 1.5}},
                "leaf": {"opacity": 1},
                "sort": False,
                "rotation": 90,
            }
        ],
        "layout": {
            "height": 440,
            "margin": {"l": 4, "r": 4, "t": 8, "b": 8},
            "uniformtext": {"minsize": 9, "mode": "hide"},
        },
    }


def _units(one: Indicator, of_leaf: dict[str, int]) -> int:
    if not one.children:
        return of_leaf[one.path]
    return sum(_units(child, of_leaf) for child in one.children)


def _parent(path: str, tree: Indicator) -> str:
    """The path of the parent branch, searched as names may contain dots."""
    return next(one.path for one in tree.walk() if any(child.path == path for child in one.children))


def _first(path: str, tree: Indicator) -> str:
    """The first-level branch that contains this path."""
    return next(child.path for child in tree.children if any(one.path == path for one in child.walk()))


def _branch_colours(tree: Indicator) -> dict[str, str]:
    """A colour for each branch of the first level, gray for clean inputs."""
    others = [child for child in tree.children if child.name != "clean"]
    colours = {child.path: cycled(COLOURS[:-1], index) for index, child in enumerate(others)}
    return colours | {child.path: CLEAN_GRAY for child in tree.children if child.name == "clean"}


def _slice_text(one: Indicator, whole: float, bounds: Bounds, *, root: bool) -> str:
    if root:
        return f"{loss_text(one.value.value, bounds)}<br>in all"
    return f"{wrapped_label(one.name, 14)}<br>{percent_text(one.contribution.value / whole)}"


def _slice_hover(one: Indicator, whole: float, bounds: Bounds) -> str:
    return (
        f"{plain_label(one.path or one.name)}<br>contributes {loss_interval(one.contribution, bounds)}: "
        f"{percent_text(one.contribution.value / whole, 1)} of the risk<br>"
        f"happens with a probability of {number_text(one.weight, 'weight')}, and then costs "
        f"{loss_interval(one.value, bounds)}"
    )


def _bar(name: str, rows: Sequence[tuple[str, Estimate]], bounds: Bounds, marker: dict[str, Any]) -> Plot:
    return {
        "type": "bar",
        "orientation": "h",
        **named(name),
        "y": [label for label, _ in rows],
        "x": [estimate.value for _, estimate in rows],
        "marker": marker,
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_finite(estimate.high, estimate.value) - estimate.value for _, estimate in rows],
            "arrayminus": [estimate.value - _finite(estimate.low, estimate.value) for _, estimate in rows],
            "thickness": 1.5,
            "width": 4,
            "color": INK,
        },
        "text": [f"{plain_label(label)}: {loss_interval(estimate, bounds)}" for label, estimate in rows],
        "textposition": "none",
        "hovertemplate": "%{text}<extra>" + plain_label(name) + "</extra>",
    }


def _values_beside(rows: Sequence[tuple[str, Estimate, str]], bounds: Bounds) -> Plot:
    """Text at the ends of the whiskers."""
    return {
        "type": "scatter",
        "mode": "text",
        "y": [name for name, _, _ in rows],
        "x": [max(_finite(estimate.high, estimate.value), 0.0) for _, estimate, _ in rows],
        "text": [f"  {', '.join([loss_text(estimate.value, bounds), *_beside(word)])}" for _, estimate, word in rows],
        "textposition": "middle right",
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _beside(verdict: str) -> list[str]:
    """The verdict in a word or two; empty for a single model."""
    return [short for word, short, _ in _VERDICTS if word == verdict and short]


def _loss_axis(result: ScenarioResult, estimates: Sequence[Estimate], *, room: float) -> dict[str, Any]:
    high = max([_finite(one.high, one.value) for one in estimates] + [0.0])
    low = min([_finite(one.low, one.value) for one in estimates] + [0.0])
    digits = "" if result.bounds != (0.0, 1.0) else ".0%" if high > _FINE else ".1%"
    return {
        "title": {"text": "mean loss (less is better)"},
        "range": [1.1 * low, (room * high) or 1.0],
        "tickformat": digits,
        "nticks": 6,
    }


def _names_axis(names: Sequence[str], shown: Sequence[str] | None = None) -> dict[str, Any]:
    """Names from top to bottom, in lines short enough for a phone."""
    return {
        "type": "category",
        "automargin": True,
        "autorange": "reversed",
        "categoryorder": "array",
        "categoryarray": list(names),
        "tickvals": list(names),
        "ticktext": [wrapped_label(label) for label in shown or names],
        "showgrid": False,
    }


def _cell_text(value: float, bounds: Bounds) -> str:
    return percent_text(value) if bounds == (0.0, 1.0) else loss_text(value, bounds)


def _arm_hover(arm: str, model: str, estimate: Estimate | None, bounds: Bounds) -> str:
    loss = "no verdict" if estimate is None else loss_interval(estimate, bounds)
    return f"{plain_label(arm)}<br>{plain_label(model)}: {loss}"


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _finite(limit: float, value: float) -> float:
    return limit if math.isfinite(limit) else value


def _letters(colour: str) -> str:
    """Black or white, whichever contrasts with the colour."""
    red, green, blue = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < _DARK else "#000000"
