"""Figures of certificates: p against eps, and the certified risk of each model with its clean error."""

import math
from collections.abc import Sequence

from advrisk.assess.certificate.records import CertificateAssessment, ListCertificate
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import size_text
from advrisk.core.palette import (
    COLOURS,
    DASHES,
    GRAY,
    SYMBOLS,
    Places,
    Plot,
    category_axis,
    cycled,
    named,
    places_of,
    plain_label,
)
from advrisk.core.values import number_text

SMALLEST_P = 1e-12  # smaller values are drawn here
_FINE = (1, 0.5, 0.1, 0.05, 0.01, 1e-3)
_COARSE = (1, 0.01, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
_WRONG, _RISK = "#D55E00", "#0072B2"


def p_curves(assessment: CertificateAssessment, norm: str, *, places: Places | None = None) -> Plot:
    """The largest p of each list against its eps, a line for each model; below its level a list is certified."""
    lines: list[Plot] = []
    places = places_of([model.model for model in assessment.models], places)
    for model in assessment.models:
        own = [one for one in model.lists if one.norm == norm and one.p is not None]
        if own:
            lines.append(_p_line(model.model, own, places[model.model]))
    sizes = sorted({one.eps for one in assessment.lists if one.norm == norm})
    ends = _margins(sizes)
    lines += [_level_line(name, level, ends) for name, level in _levels(assessment, norm).items()]
    return {
        "data": lines,
        "layout": {
            "xaxis": {
                "title": {"text": f"eps ({norm})"},
                "tickvals": sizes,
                "ticktext": [size_text(size) for size in sizes],
                "range": list(ends),
            },
            "yaxis": {"title": {"text": "p, on a log scale"}, **_p_axis(min(min(line["y"]) for line in lines))},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 400,
        },
    }


def _levels(assessment: CertificateAssessment, norm: str) -> dict[str, float]:
    """Name -> level that p is compared with: zeta, or the share of it that models have."""
    models: dict[float, list[str]] = {}
    for model in assessment.models:
        for level in {one.level for one in model.lists if one.norm == norm}:
            models.setdefault(level, []).append(model.model)
    if len(models) == 1:
        (level,) = models
        return {f"{'zeta =' if level == assessment.zeta else 'held against'} {level:.3g}": level}
    return {f"{', '.join(names)}: held against {level:.3g}": level for level, names in models.items()}


def _level_line(name: str, level: float, ends: tuple[float, float]) -> Plot:
    return {
        "type": "scatter",
        "mode": "lines",
        **named(name),
        "x": list(ends),
        "y": [level, level],
        "line": {"color": GRAY, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _p_axis(least: float) -> Plot:
    """A log axis down to the least p, with familiar ticks."""
    shown = [tick for tick in (_FINE if least > 3e-4 else _COARSE) if tick >= least / 2]
    bottom = math.log10(min(least, 0.01) / 2)
    return {
        "type": "log",
        "range": [bottom, -0.05 * bottom],
        "automargin": True,
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [f"{tick:g}" for tick in shown],
    }


def _margins(sizes: Sequence[float]) -> tuple[float, float]:
    spread = (sizes[-1] - sizes[0]) or sizes[-1] or 1.0
    return sizes[0] - 0.06 * spread, sizes[-1] + 0.06 * spread


def _p_line(model: str, lists: Sequence[ListCertificate], index: int) -> Plot:
    own = [1.0 if one.p is None else one.p for one in lists]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        **named(model),
        "x": [one.eps for one in lists],
        "y": [max(p, SMALLEST_P) for p in own],
        "customdata": [
            [number_text(p, "p-value"), one.verdict, one.attacks[0].failures] for p, one in zip(own, lists, strict=True)
        ],
        "line": {"color": cycled(COLOURS, index), "dash": cycled(DASHES, index), "width": 2},
        "marker": {
            "size": 10,
            "color": cycled(COLOURS, index),
            "symbol": [f"{cycled(SYMBOLS, index)}{'' if one.certified else '-open'}" for one in lists],
        },
        "hovertemplate": f"{plain_label(model)}<br>eps %{{x:.4g}}: p = %{{customdata[0]}}, %{{customdata[1]}}"
        "<br>failures of the worst attack: %{customdata[2]}<extra></extra>",
    }


def risk_bars(assessment: CertificateAssessment, norm: str, eps: float) -> Plot:
    """For each model at one size: the certified risk, the observed risk, and the clean error."""
    lists = [(model, one) for model in assessment.models for one in model.lists if (one.norm, one.eps) == (norm, eps)]
    tested = [(model, one, one.certificate) for model, one in lists if one.certificate is not None]
    names = [model.model for model, _, _ in tested]
    clean = {
        "type": "bar",
        "orientation": "h",
        "name": "clean error",
        "y": names,
        "x": [model.clean_error.value for model, _, _ in tested],
        "marker": {"color": "#999999"},
        "text": [plain_label(name) for name in names],
        "textposition": "none",
        "hovertemplate": "%{text}: %{x:.1%} clean error<extra></extra>",
    }
    return {
        "data": [
            clean,
            _bars("worst attack: seen, and certified", names, [c.worst.risk for _, _, c in tested], _RISK),
            _bars("incorrect, clean or attacked", names, [(c.wrong or c.union).risk for _, _, c in tested], _WRONG),
        ],
        "layout": {
            "barmode": "group",
            "xaxis": {"title": {"text": "share of samples"}, "tickformat": ".0%", "rangemode": "tozero"},
            "yaxis": {"autorange": "reversed", "automargin": True, **category_axis(names)},
            "shapes": [
                {
                    "type": "line",
                    "x0": assessment.alpha,
                    "x1": assessment.alpha,
                    "yref": "paper",
                    "y0": 0,
                    "y1": 1,
                    "line": {"color": GRAY, "dash": "dot", "width": 1.5},
                }
            ],
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 150 + 78 * len(tested),
            "margin": {"l": 120},
        },
    }


def _bars(name: str, models: Sequence[str], risks: Sequence[Estimate], colour: str) -> Plot:
    """Bars of observed risks, with whiskers up to certified ones."""
    observed = [risk.value for risk in risks]
    high = [risk.high for risk in risks]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(models),
        "x": observed,
        "customdata": high,
        "marker": {"color": colour, "pattern": {"shape": "/" if colour == _WRONG else ""}},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [top - value for top, value in zip(high, observed, strict=True)],
            "arrayminus": [0.0] * len(observed),
            "thickness": 2,
            "width": 6,
            "color": "ink",
        },
        "text": [plain_label(model) for model in models],
        "textposition": "none",
        "hovertemplate": f"%{{text}}: {name}<br>%{{x:.1%}} seen, at most %{{customdata:.1%}} certified<extra></extra>",
    }
