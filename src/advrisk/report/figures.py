"""Figures as plotly specifications: plain dicts, drawn by the script that the report carries."""

from typing import Any

import numpy as np

from advrisk.report.summary import damage_name
from advrisk.risk.assessment import DamageAssessment
from advrisk.risk.convergence import DAMAGE, Convergence
from advrisk.risk.damage import success_ratio
from advrisk.risk.evasion import AverageEvasion, Evasion, Floats, ThresholdEvasion, as_curve, curve_band

Figure = dict[str, Any]

# Okabe & Ito's palette, told apart by people with colour-blindness; dashes and symbols differ, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
_POINTS = 1000
_SMOOTH = 200  # points of a smooth curve
_LABEL = 40  # characters


def success_curves(assessment: DamageAssessment) -> Figure:
    """ASR(τ) of every model, and Ψ of the models together, against the size of the perturbation."""
    found = np.concatenate(list(assessment.distances.by_model.values()))
    reach = float(found[np.isfinite(found)].max(initial=0)) or 1.0
    sizes = np.unique([0, *found[np.isfinite(found)], *assessment.thresholds, 1.05 * reach])  # where curves jump
    if len(sizes) > _POINTS:
        sizes = np.unique([*np.linspace(0, 1.05 * reach, _POINTS), *assessment.thresholds])
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": short_label(model),
            "x": sizes.tolist(),
            "y": success_ratio(distances, sizes).tolist(),
            "line": {"shape": "hv", "color": cycled(COLOURS, place), "dash": cycled(DASHES, place), "width": 2.5},
            "hovertemplate": f"{plain_label(model)}<br>size %{{x:.3f}}: %{{y:.1%}} broken<extra></extra>",
        }
        for place, (model, distances) in enumerate(assessment.distances.by_model.items())
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


def _evasion_lines(curve: Evasion, sizes: Floats, level: float) -> list[Figure]:
    """Ψ, and the band of one that was fitted; only the average of models and a threshold jump."""
    jumps = isinstance(curve, AverageEvasion | ThresholdEvasion)
    sizes = sizes if jumps else np.linspace(0, sizes[-1], _SMOOTH)
    shape = "hv" if jumps else "linear"
    low, high = curve_band(as_curve(curve), sizes, level, rng=np.random.default_rng(0))
    shared = {"type": "scatter", "mode": "lines", "x": sizes.tolist(), "legendgroup": "Ψ"}
    edge = shared | {"line": {"width": 0, "shape": shape}, "hoverinfo": "skip", "showlegend": False}
    line = shared | {
        "name": "Ψ: undetected",
        "y": np.asarray(curve(sizes)).tolist(),
        "line": {"shape": shape, "color": "#888888", "width": 1.5, "dash": "dot"},
        "hovertemplate": "Ψ(%{x:.3f}) = %{y:.2f}<extra></extra>",
    }
    if np.array_equal(low, high):
        return [line]
    return [edge | {"y": low.tolist()}, edge | {"y": high.tolist(), "fill": "tonexty", "fillcolor": "#88888833"}, line]


def damage_intervals(assessment: DamageAssessment) -> Figure:
    """Damage of every model with its interval, the least at the top."""
    order = list(assessment.distances.by_model)
    points = []
    for row in reversed(assessment.models):
        if (estimate := row.ranked_by) is None:
            continue
        place = order.index(row.model)
        points.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": short_label(row.model),
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
                "hovertemplate": f"{estimate} at {estimate.level:.0%}<extra>{plain_label(row.model)}</extra>",
            }
        )
    return {
        "data": points,
        "layout": {
            "xaxis": {
                "title": {"text": f"{damage_name(relative=assessment.relative)} (less is better)"},
                "range": [0, 1],
            },
            "yaxis": {"automargin": True, **_category_axis([row.model for row in assessment.models])},
            "showlegend": False,
            "height": 120 + 44 * len(points),
        },
    }


def settling(found: Convergence, measure: str) -> Figure:
    """One number of every model against the number of samples: the median of the resamples, and their band."""
    lines: list[Figure] = []
    for place, model in enumerate(found.models):
        band, colour = found.bands[model][measure], cycled(COLOURS, place)
        known = np.isfinite(band.middle)
        n = found.n[known].tolist()
        shared = {"type": "scatter", "x": n, "legendgroup": model}
        edge = shared | {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        lines.append(edge | {"y": band.low[known].tolist()})
        lines.append(edge | {"y": band.high[known].tolist(), "fill": "tonexty", "fillcolor": f"{colour}33"})
        lines.append(
            shared
            | {
                "mode": "lines",
                "name": short_label(model),
                "y": band.middle[known].tolist(),
                "line": {"color": colour, "dash": cycled(DASHES, place), "width": 2},
                "hovertemplate": f"{plain_label(model)}<br>%{{x}} samples: %{{y:.3g}}<extra></extra>",
            }
        )
    name = damage_name(relative=found.relative) if measure == DAMAGE else measure
    return {
        "data": lines,
        "layout": {
            "xaxis": {"title": {"text": "samples"}, "type": "log", "dtick": 1},
            "yaxis": {"title": {"text": name}, "rangemode": "tozero"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 340,
        },
    }


def arm_heat_map(rows: list[dict[str, Any]], models: list[str]) -> Figure:
    """The share of samples that each arm leaves wrong, for each model."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    share = {(row["arm"], row["model"]): row["share"] for row in rows}
    grid = [[share.get((arm, model)) for model in models] for arm in arms]
    return {
        "data": [
            {
                "type": "heatmap",
                "x": models,
                "y": arms,
                "z": grid,
                "zmin": 0,
                "zmax": 1,
                "colorscale": "Cividis",
                "texttemplate": "%{z:.0%}",
                "colorbar": {"title": {"text": "wrong"}, "tickformat": ".0%"},
                "hovertemplate": "%{y}<br>%{x}: %{z:.1%} wrong<extra></extra>",
            }
        ],
        "layout": {
            "xaxis": {"side": "top", **_category_axis(models)},
            "yaxis": {"autorange": "reversed", "automargin": True, **_category_axis(arms)},
            "height": 120 + 26 * len(arms),
        },
    }


def cycled(choices: tuple[str, ...], place: int) -> str:
    """The choice for the n-th thing; after the last, the first again."""
    return choices[place % len(choices)]


def _category_axis(names: list[str]) -> dict[str, Any]:
    """An axis of names, of which long ones are shown shortened."""
    return {
        "type": "category",
        "tickmode": "array",
        "tickvals": names,
        "ticktext": [short_label(name) for name in names],
    }


def short_label(name: str, width: int = _LABEL) -> str:
    """Cut in the middle: a name begins with what it is, and ends with what tells it from others."""
    half = width // 2
    return plain_label(name if len(name) <= width else f"{name[: width - half - 1]}…{name[-half:]}")


def plain_label(name: str) -> str:
    """plotly reads a little HTML in labels; names are text."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
