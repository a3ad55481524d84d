"""Figures of survival as plotly specifications: curves, coefficients, calibration, and the Pareto set."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.assess.survival.coefficients import coefficient_table, family_name
from advrisk.assess.survival.models import ModelSurvival
from advrisk.core.estimate import Estimate
from advrisk.core.palette import (
    COLOURS,
    DASHES,
    GRAY,
    SYMBOLS,
    Places,
    Plot,
    cycled,
    edge_of,
    few_marks,
    named,
    places_of,
    plain_label,
    short_label,
)
from advrisk.risk.survival.calibration import Calibration
from advrisk.risk.survival.kaplan_meier import KaplanMeier
from advrisk.risk.survival.paired import ACCURACY, FAILURES, TRAINING
from advrisk.risk.survival.records import AccelerationFactor, Curve

_TIMES = 40  # points of a smooth curve
_VALUES = 5  # of a covariate
MOST_MODELS = 8  # in one figure
_SMALL, _LARGE = 8, 22  # marks of the Pareto plot
_LABEL = 26


def survival_curves(
    assessment: SurvivalAssessment, models: Sequence[ModelSurvival], *, places: Places | None = None
) -> Plot:
    """Each model's Kaplan-Meier curve as steps and, if the law holds, the law as a line."""
    lines: list[Plot] = []
    places = places_of([one.model for one in assessment.models], places)
    for one in models:
        colour = cycled(COLOURS, places[one.model])
        if one.curve is not None:
            lines += _steps(one.curve, one.model, places[one.model])
        if assessment.law is not None and one.law_mean is not None:
            lines.append(
                _law(assessment.law.curve(_times(assessment), at=one.at), one.model, colour, show=one.curve is None)
            )
    return {"data": lines, "layout": _time_layout(assessment)}


def covariate_curves(assessment: SurvivalAssessment, covariate: str, *, places: Places | None = None) -> Plot:
    """Survival if every row had one value of a covariate, all others unchanged."""
    assert assessment.law is not None
    values = covariate_values(assessment, covariate)
    effects = assessment.law.partial_effects(covariate, values, _times(assessment))
    lines: list[Plot] = []
    own = {value: index for index, value in enumerate(values)}
    own = places_of(values, places) if covariate == "model" else own
    for value, curve in zip(values, effects.curves, strict=True):
        name = f"{value:.4g}" if isinstance(value, float) else str(value)
        index = own[value]
        colour = cycled(COLOURS, index)
        lines += _band(curve.times, curve.low, curve.high, name, colour, shape="linear")
        lines.append(_law(curve, name, colour, show=True) | {"line": _line(colour, cycled(DASHES, index))})
    return {"data": lines, "layout": _time_layout(assessment)}


def covariate_values(assessment: SurvivalAssessment, covariate: str) -> list[Any]:
    """Up to five values of a covariate, including the smallest and the largest."""
    column = assessment.durations.columns[covariate]
    values = sorted(set(column[np.isin(assessment.durations.columns["model"], _fitted_models(assessment))].tolist()))
    if len(values) <= _VALUES or isinstance(values[0], str):
        return values[:MOST_MODELS]
    return [values[round(place)] for place in np.linspace(0, len(values) - 1, _VALUES)]


def _fitted_models(assessment: SurvivalAssessment) -> list[str]:
    return [one.model for one in assessment.models if one.law_mean is not None]


def factor_plot(factors: Sequence[AccelerationFactor], names: Mapping[str, str]) -> Plot:
    """Acceleration factors over whole ranges, with intervals."""
    rows = list(factors)
    labels = [names[one.name] for one in rows]
    values = [one.per_range for one in rows]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [one.value for one in values],
                "y": labels,
                "marker": {"size": 11, "color": COLOURS[0]},
                "error_x": _whiskers(values),
                "text": [
                    f"{plain_label(label)}: {one.value:.3g} times [{one.low:.3g}, {one.high:.3g}]"
                    for label, one in zip(labels, values, strict=True)
                ],
                "hovertemplate": "%{text}<extra></extra>",
                "showlegend": False,
            }
        ],
        "layout": {
            "xaxis": {"title": {"text": "times as long"}, "type": "log", "tickvals": _ticks(values)},
            "yaxis": _names_axis(labels),
            "shapes": [_upright(1.0)],
            "margin": {"t": 16},
            "height": 120 + 44 * len(rows),
        },
    }


def coefficient_plot(assessment: SurvivalAssessment) -> Plot:
    """Coefficients of all laws side by side, on the log scale of time, over whole ranges (Meyers et al., Fig. 1)."""
    rows = coefficient_table(assessment)
    labels = [row.name for row in rows]
    points = []
    for index, family in enumerate(one.family for one in assessment.families):
        values = [row.effects[index] for row in rows]
        there = [(label, one) for label, one in zip(labels, values, strict=True) if one is not None]
        points.append(
            {
                "type": "scatter",
                "mode": "markers",
                **named(family_name(family)),
                "x": [one.value for _, one in there],
                "y": [label for label, _ in there],
                "marker": {"size": 10, "color": cycled(COLOURS, index), "symbol": cycled(SYMBOLS, index)},
                "error_x": _whiskers([one for _, one in there]),
                "text": [f"{one.value:.3g} [{one.low:.3g}, {one.high:.3g}]" for _, one in there],
                "hovertemplate": f"{family_name(family)}: %{{text}}<extra></extra>",
            }
        )
    return {
        "data": points,
        "layout": {
            "xaxis": {"title": {"text": "log time"}, "zeroline": True},
            "yaxis": _names_axis(labels),
            "shapes": [_upright(0.0)],
            "scattermode": "group",
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 140 + 62 * len(rows),
        },
    }


def hazard_plot(
    assessment: SurvivalAssessment, models: Sequence[ModelSurvival], *, places: Places | None = None
) -> Plot:
    """h(t) of each model by the law: failures among surviving samples (Meyers et al., Eq. 3)."""
    lines: list[Plot] = []
    places = places_of([one.model for one in assessment.models], places)
    for one in (one for one in models if one.hazard):
        place = places[one.model]
        times = np.array([time for time, _, _ in one.hazard])
        value, low, high = (np.array([getattr(h, end) for _, h, _ in one.hazard]) for end in ("value", "low", "high"))
        lines += _band(times, low, high, one.model, cycled(COLOURS, place), shape="linear")
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                **named(one.model, _LABEL),
                "legendgroup": one.model,
                "x": times.tolist(),
                "y": value.tolist(),
                "line": _line(cycled(COLOURS, place), cycled(DASHES, place)),
                "hovertemplate": f"{plain_label(one.model)}<br>at %{{x:.4g}}: %{{y:.3g}}<extra></extra>",
            }
        )
    layout = _time_layout(assessment)
    title = f"failures per {assessment.durations.one_unit}, of what is left"
    return {"data": lines, "layout": layout | {"yaxis": {"title": {"text": title}, "rangemode": "tozero"}}}


def calibration_plot(calibration: Calibration) -> Plot:
    """Observed against predicted shares broken by a time."""
    predicted = calibration.predicted.tolist()
    lines = []
    if calibration.low is not None:
        lines = _band(calibration.predicted, calibration.low, calibration.high, "observed", COLOURS[0], shape="linear")
    lines.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "observed",
            "x": predicted,
            "y": calibration.observed.tolist(),
            "line": {"color": COLOURS[0], "width": 2.5},
            "hovertemplate": "predicted %{x:.1%}: observed %{y:.1%}<extra></extra>",
        }
    )
    diagonal = {"type": "scatter", "mode": "lines", "name": "as predicted", "x": [0, 1], "y": [0, 1]}
    lines.append(diagonal | {"line": {"color": GRAY, "dash": "dot", "width": 1.5}, "hoverinfo": "skip"})
    share = {"range": [0, 1], "tickformat": ".0%"}
    return {
        "data": lines,
        "layout": {
            "xaxis": {"title": {"text": "predicted share"}, **share},
            "yaxis": {"title": {"text": "observed share"}, **share},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 380,
        },
    }


def pareto_plot(assessment: SurvivalAssessment, *, places: Places | None = None) -> Plot:
    """Clean accuracy against failures under attack; the larger a mark, the longer the training."""
    criteria = {one.name: one for one in assessment.criteria}
    accuracy, failures, training = (criteria.get(name) for name in (ACCURACY, FAILURES, TRAINING))
    assert accuracy is not None
    assert failures is not None
    most = max(training.values.values()) if training else 1.0
    points = []
    places = places_of([one.model for one in assessment.models], places)
    for one in assessment.pareto:
        place = places[one.model]
        seconds = training.values[one.model] if training else None
        size = _LARGE if seconds is None else _SMALL + (_LARGE - _SMALL) * float(np.sqrt(seconds / (most or 1.0)))
        shown = "" if seconds is None else f"<br>trained in {seconds:.4g} s"
        points.append(
            {
                "type": "scatter",
                "mode": "markers",
                **named(one.model, _LABEL),
                "x": [failures.values[one.model]],
                "y": [accuracy.values[one.model]],
                "marker": {
                    "size": size,
                    "color": cycled(COLOURS, place) if one.on_front else "rgba(0,0,0,0)",
                    "symbol": cycled(SYMBOLS, place),
                    "line": {"color": cycled(COLOURS, place), "width": 2},
                },
                "hovertemplate": f"{plain_label(one.model)}<br>%{{x:.3g}} failures per "
                f"{assessment.durations.one_unit}<br>%{{y:.1%}} correct clean{shown}<extra></extra>",
            }
        )
    return {
        "data": points,
        "layout": {
            "xaxis": {
                "title": {"text": f"failures per {assessment.durations.one_unit}, attacked"},
                "rangemode": "tozero",
            },
            "yaxis": {"title": {"text": "clean accuracy"}, "tickformat": ".1%"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 400,
        },
    }


def _names_axis(labels: Sequence[str]) -> Plot:
    return {
        "type": "category",
        "automargin": True,
        "autorange": "reversed",
        "tickvals": list(labels),
        "ticktext": [_two_lines(label) for label in labels],
    }


def _upright(x: float) -> Plot:
    ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", **ends, "line": {"color": GRAY, "dash": "dot"}}


def _times(assessment: SurvivalAssessment) -> list[float]:
    return [float(time) for time in np.linspace(0, assessment.until, _TIMES + 1)]


def _time_layout(assessment: SurvivalAssessment) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": assessment.unit}, "range": [0, 1.02 * assessment.until]},
        "yaxis": {"title": {"text": "share not broken yet"}, "range": [0, 1.02], "tickformat": ".0%"},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "height": 440,
    }


def _steps(curve: KaplanMeier, name: str, place: int) -> list[Plot]:
    colour = cycled(COLOURS, place)
    times = np.concatenate([[0.0], curve.times])
    low, high = np.concatenate([[1.0], curve.low]), np.concatenate([[1.0], curve.high])
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "marker": few_marks(place),
        **named(name, _LABEL),
        "legendgroup": name,
        "x": times.tolist(),
        "y": [1.0, *curve.survival.tolist()],
        "line": {"color": colour, "width": 2.5, "shape": "hv"},
        "hovertemplate": f"{plain_label(name)}<br>after %{{x:.4g}}: %{{y:.1%}} not broken<extra></extra>",
    }
    return [*_band(times, low, high, name, colour, shape="hv"), line]


def _band(times: Any, low: Any, high: Any, group: str, colour: str, *, shape: str) -> list[Plot]:
    edge: Plot = {"type": "scatter", "mode": "lines", "x": times.tolist(), "line": {"width": 0, "shape": shape}}
    above = {"y": high.tolist(), "fill": "tonexty", "fillcolor": f"{colour}26"}
    return [edge | edge_of(group, "low") | {"y": low.tolist()}, edge | edge_of(group, "high") | above]


def _law(curve: Curve, name: str, colour: str, *, show: bool) -> Plot:
    return {
        "type": "scatter",
        "mode": "lines",
        **named(name, _LABEL),
        "meta": {"series": name, "part": "the fitted law"},
        "legendgroup": name,
        "showlegend": show,
        "x": curve.times.tolist(),
        "y": curve.survival.tolist(),
        "line": _line(colour, "dash"),
        "hovertemplate": f"{plain_label(name)}, by the fit<br>after %{{x:.4g}}: %{{y:.1%}} not broken<extra></extra>",
    }


def _line(colour: str, dash: str) -> dict[str, Any]:
    return {"color": colour, "width": 1.8, "dash": dash}


def _whiskers(values: Sequence[Estimate]) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [min(one.high, 1e300) - one.value for one in values],
        "arrayminus": [one.value - one.low for one in values],
        "thickness": 2,
        "width": 6,
    }


def _ticks(values: Sequence[Estimate]) -> list[float]:
    """1, 2, 5, 10 and so on, over all intervals."""
    low = min([1.0, *(one.low for one in values if one.low > 0)])
    high = max([1.0, *(one.high for one in values if np.isfinite(one.high))])
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    steps = (1, 2, 5) if last - first < 3 else (1,)
    return [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]


def _two_lines(label: str) -> str:
    first, sign, rest = label.partition(", ")
    return f"{short_label(first, 24)}<br>{short_label(rest, 30)}" if sign else short_label(label, 24)
