"""Figures of damage as plotly specifications: success curves, robust accuracy, and damage with intervals."""

import numpy as np

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.words import damage_name, share_name
from advrisk.core.numbers import level_text
from advrisk.core.palette import (
    COLOURS,
    GRAY,
    SYMBOLS,
    Places,
    Plot,
    category_axis,
    cycled,
    edge_of,
    few_marks,
    line_of,
    named,
    places_of,
    plain_label,
)
from advrisk.risk.damage import success_ratio
from advrisk.risk.evasion import AverageEvasion, Evasion, Floats, ThresholdEvasion, as_curve, curve_band

_POINTS = 1000  # largest number of points of a step curve
_SMOOTH = 200  # points of a smooth curve
_MARKED = 12  # curves with fewer points show markers
_UNDETECTED = "Ψ: undetected"


def success_curves(assessment: DamageAssessment, *, places: Places | None = None) -> Plot:
    """ASR(τ) of every model, and Ψ, against the size of the perturbation."""
    by_model = assessment.distances.by_model
    places = places_of(by_model, places)
    pooled = np.concatenate(list(by_model.values()))
    reach = float(pooled[np.isfinite(pooled)].max(initial=0)) or 1.0
    sizes = np.unique([0, *pooled[np.isfinite(pooled)], *assessment.thresholds, 1.05 * reach])  # where curves jump
    if len(sizes) > _POINTS:
        sizes = np.unique([*np.linspace(0, 1.05 * reach, _POINTS), *assessment.thresholds])
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            **named(model),
            "x": sizes.tolist(),
            "y": success_ratio(distances, sizes).tolist(),
            "line": {"shape": "hv", **line_of(places[model]), "width": 2.5},
            "hovertemplate": f"{plain_label(model)}<br>size %{{x:.3f}}: %{{y:.1%}} broken<extra></extra>",
        }
        for model, distances in by_model.items()
    ]
    if assessment.curve is not None:
        lines += _evasion_lines(assessment.curve, sizes, assessment.level)
    return {
        "data": lines,
        "layout": {
            "xaxis": {
                "title": {"text": f"size of the perturbation ({assessment.distances.norm})"},
                "rangemode": "tozero",
            },
            "yaxis": {"title": {"text": "share of samples broken"}, "range": [0, 1.02], "tickformat": ".0%"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 420,
        },
    }


def robust_curves(assessment: DamageAssessment, *, places: Places | None = None) -> Plot | None:
    """Robust accuracy of every model against the size, with bands; of a target, the attack success rate.

    Curves with few points have markers. None if there are fewer than two sizes.
    """
    basis = assessment.robustness
    sizes = basis.curve_sizes(assessment.thresholds) if basis else []
    if basis is None or len(sizes) < 2:
        return None
    places = places_of(assessment.distances.by_model, places)
    lines: list[Plot] = []
    marked = len(sizes) < _MARKED
    for row in assessment.models:
        shares = [(basis.broken if basis.targeted else basis.robust)(row.model, size) for size in sizes]
        low, value, high = ([round(getattr(one, end), 4) for one in shares] for end in ("low", "value", "high"))
        shared = {"type": "scatter", "x": [round(size, 6) for size in sizes], "legendgroup": row.model}
        edge = shared | {"mode": "lines", "line": {"width": 0}}
        filled = {"fill": "tonexty", "fillcolor": f"{cycled(COLOURS, places[row.model])}26"}
        lines += [
            edge | edge_of(row.model, "low") | {"y": low},
            edge | edge_of(row.model, "high") | {"y": high} | filled,
            shared
            | {
                "mode": "lines+markers" if marked else "lines",
                **named(row.model),
                "y": value,
                "customdata": list(zip(low, high, strict=True)),
                "line": {**line_of(places[row.model]), "width": 2.5},
                "marker": few_marks(places[row.model]),
                "hovertemplate": f"{plain_label(row.model)}<br>size %{{x:.3g}}: %{{y:.1%}}<br>"
                "between %{customdata[0]:.1%} and %{customdata[1]:.1%}<extra></extra>",
            },
        ]
    return {
        "data": lines,
        "layout": {
            "xaxis": {"title": {"text": f"size of the perturbation ({assessment.distances.norm})"}},
            "yaxis": {"title": {"text": share_name(assessment)}, "range": [0, 1.02], "tickformat": ".0%"},
            "shapes": [_upright(eps) for eps in assessment.thresholds],
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 340,
        },
    }


def _upright(eps: float) -> Plot:
    ends = {"x0": eps, "x1": eps, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", **ends, "line": {"color": GRAY, "dash": "dot", "width": 1}}


def _evasion_lines(curve: Evasion, sizes: Floats, level: float) -> list[Plot]:
    """Ψ, with a band if it was fitted; only the average of models and a threshold are step functions."""
    jumps = isinstance(curve, AverageEvasion | ThresholdEvasion)
    sizes = sizes if jumps else np.linspace(0, sizes[-1], _SMOOTH)
    shape = "hv" if jumps else "linear"
    low, high = curve_band(as_curve(curve), sizes, level)
    shared = {"type": "scatter", "mode": "lines", "x": sizes.tolist()}
    edge = shared | {"line": {"width": 0, "shape": shape}}
    line = shared | {
        **named(_UNDETECTED),
        "legendgroup": _UNDETECTED,
        "y": np.asarray(curve(sizes)).tolist(),
        "line": {"shape": shape, "color": GRAY, "width": 1.5, "dash": "dot"},
        "hovertemplate": "Ψ(%{x:.3f}) = %{y:.2f}<extra></extra>",
    }
    if np.array_equal(low, high):
        return [line]
    below = edge | edge_of(_UNDETECTED, "low") | {"y": low.tolist()}
    above = edge | edge_of(_UNDETECTED, "high") | {"y": high.tolist(), "fill": "tonexty", "fillcolor": f"{GRAY}33"}
    return [below, above, line]


def damage_intervals(assessment: DamageAssessment, *, places: Places | None = None) -> Plot:
    """Damage of every model with its interval, the least at the top."""
    places = places_of(assessment.distances.by_model, places)
    points = []
    for row in reversed(assessment.models):
        if (estimate := row.ranked_by) is None:
            continue
        place = places[row.model]
        points.append(
            {
                "type": "scatter",
                "mode": "markers",
                **named(row.model),
                "x": [estimate.value],
                "y": [row.model],
                "marker": {"size": 12, "color": cycled(COLOURS, place), "symbol": cycled(SYMBOLS, place)},
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [estimate.high - estimate.value],
                    "arrayminus": [estimate.value - estimate.low],
                    "thickness": 2,
                    "width": 8,
                },
                "hovertemplate": f"{estimate} at {level_text(estimate.level)}<extra>{plain_label(row.model)}</extra>",
            }
        )
    return {
        "data": points,
        "layout": {
            "xaxis": {
                "title": {"text": f"{damage_name(relative=assessment.relative)} (less is better)"},
                "range": [0, 1],
            },
            "yaxis": {"automargin": True, **category_axis([row.model for row in assessment.models])},
            "showlegend": False,
            "height": 120 + 44 * len(points),
        },
    }
