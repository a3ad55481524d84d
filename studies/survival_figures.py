"""Pictures of the survival study: curves by depth, what makes networks last, and every network as a dot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.estimate import Estimate
from advrisk.core.palette import COLOURS, Plot
from studies.figures import COMMON, FRAME

Floats = NDArray[np.float64]
_GRAY = "#888888"


@dataclass(frozen=True)
class Curve:
    """The share of attacks that a depth has survived after so much work: as seen, and as fitted."""

    name: str
    work: Floats
    seen: Floats
    fitted: Floats  # at the same work


def survival_curves(panels: Mapping[str, Sequence[Curve]], *, unit: str) -> Plot:
    """A panel for each run, a step line for each depth, and its fit as a dotted line."""
    traces: list[Plot] = []
    layout: Plot = dict(COMMON)
    for place, (_, curves) in enumerate(panels.items(), start=1):
        for rank, curve in enumerate(curves):
            traces += _curve(curve, rank, place)
        layout |= _axes(place, len(panels), x={"title": _words(unit), "dtick": 1})
        layout[f"yaxis{place}"] |= {"range": [0, 1.02], "tickformat": ".0%"}
        start = layout[f"xaxis{place}"]["domain"][0]
        layout[_legend(place)] = {"orientation": "h", "x": start, "y": -0.2}
    layout["yaxis1"]["title"] = _words("attacks not yet successful")
    layout["annotations"] = [_title(place, len(panels), title) for place, title in enumerate(panels, start=1)]
    layout |= {"margin": {"l": 70, "r": 20, "t": 35, "b": 40}}
    return {"data": traces, "layout": layout | {"width": 1000, "height": 440}}


def _curve(curve: Curve, rank: int, place: int) -> list[Plot]:
    colour = COLOURS[rank % len(COLOURS)]
    axes = {"xaxis": f"x{place}", "yaxis": f"y{place}", "type": "scatter", "mode": "lines", "legend": _legend(place)}
    x = curve.work.tolist()
    solid = {"color": colour, "width": 2, "shape": "hv"}
    dotted = {"color": colour, "width": 1.6, "dash": "dot"}
    return [
        axes | {"x": x, "y": curve.seen.tolist(), "name": curve.name, "line": solid},
        axes | {"x": x, "y": curve.fitted.tolist(), "line": dotted, "showlegend": False},
    ]


def factor_plot(panels: Mapping[str, Mapping[str, Estimate]]) -> Plot:
    """A dot and its interval for each acceleration factor: right of 1 lasts longer."""
    traces: list[Plot] = []
    layout: Plot = dict(COMMON)
    longest = max(len(factors) for factors in panels.values())
    for place, factors in enumerate(panels.values(), start=1):
        names, values = list(factors), list(factors.values())
        axes = {"xaxis": f"x{place}", "yaxis": f"y{place}", "showlegend": False}
        dots: Plot = {"type": "scatter", "mode": "markers", "y": names, "x": [one.value for one in values]}
        dots |= {"marker": {"size": 8, "color": COLOURS[0]}, "error_x": _error(values)}
        traces.append(axes | dots)
        text = "times as long until broken"
        layout |= _axes(place, len(panels), gap=0.2, x={"type": "log", "title": _words(text), **_plain_ticks(values)})
        layout[f"yaxis{place}"] |= {"type": "category", "autorange": "reversed", "automargin": True}
    layout["shapes"] = [_one(place) for place in range(1, len(panels) + 1)]
    layout["annotations"] = [_title(place, len(panels), title, gap=0.2) for place, title in enumerate(panels, start=1)]
    layout |= {"margin": {"l": 150, "r": 20, "t": 35, "b": 55}}
    return {"data": traces, "layout": layout | {"width": 1000, "height": 120 + 24 * longest}}


@dataclass(frozen=True)
class Dots:
    """Networks of one kind: their numbers over depth."""

    name: str
    depths: Sequence[float]
    values: Sequence[float]


def network_dots(panels: Mapping[str, Sequence[Dots]], *, titles: Sequence[str]) -> Plot:
    """Every network as a dot over its depth, and a line through the means of each kind."""
    traces: list[Plot] = []
    layout: Plot = dict(COMMON)
    for place, kinds in enumerate(panels.values(), start=1):
        for rank, kind in enumerate(kinds):
            traces += _dots(kind, rank, len(kinds), place)
        depths = sorted({depth for kind in kinds for depth in kind.depths})
        layout |= _axes(place, len(panels), gap=0.1, x={"title": _words("layers"), "tickvals": depths})
        layout[f"yaxis{place}"] |= {"title": _words(titles[place - 1]), "type": "log", "automargin": True}
        layout[f"yaxis{place}"] |= {"nticks": 6}
    layout["annotations"] = [_title(place, len(panels), title, gap=0.1) for place, title in enumerate(panels, start=1)]
    layout |= {"legend": {"orientation": "h", "x": 0, "y": -0.2}, "margin": {"l": 80, "r": 20, "t": 35, "b": 40}}
    return {"data": traces, "layout": layout | {"width": 1000, "height": 430}}


def _dots(kind: Dots, rank: int, n: int, place: int) -> list[Plot]:
    colour = COLOURS[rank % len(COLOURS)]
    axes = {"xaxis": f"x{place}", "yaxis": f"y{place}", "type": "scatter", "legendgroup": kind.name}
    depth, value = np.asarray(kind.depths, float), np.asarray(kind.values, float)
    shift = 0.5 * (rank - (n - 1) / 2)
    at = np.unique(depth)
    means = [float(np.exp(np.log(value[depth == one]).mean())) for one in at]
    dots = {"x": (depth + shift).tolist(), "y": value.tolist(), "mode": "markers", "name": kind.name}
    line = {"x": (at + shift).tolist(), "y": means, "mode": "lines", "showlegend": False}
    marks = {"marker": {"size": 8, "color": colour, "opacity": 0.75}, "showlegend": place == 1}
    return [axes | dots | marks, axes | line | {"line": {"color": colour, "width": 2}}]


def _legend(place: int) -> str:
    """Plotly's name for it: the first has no number."""
    return "legend" if place == 1 else f"legend{place}"


def _words(text: str) -> Plot:
    return {"text": text, "font": {"size": 13}, "standoff": 8}


def _axes(place: int, n: int, *, x: Mapping[str, Any], gap: float = 0.08) -> Plot:
    width = (1 - gap * (n - 1)) / n
    start = (place - 1) * (width + gap)
    return {
        f"xaxis{place}": FRAME | {"domain": [start, start + width], "anchor": f"y{place}"} | dict(x),
        f"yaxis{place}": FRAME | {"anchor": f"x{place}"},
    }


def _title(place: int, n: int, text: str, *, gap: float = 0.08) -> Plot:
    width = (1 - gap * (n - 1)) / n
    middle = (place - 1) * (width + gap) + width / 2
    at = {"x": middle, "y": 1.0, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
    return at | {"text": f"<b>{text}</b>", "showarrow": False}


def _one(place: int) -> Plot:
    line = {"color": _GRAY, "width": 1.2, "dash": "dot"}
    return {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "xref": f"x{place}", "yref": f"y{place} domain"} | {
        "line": line
    }


def _error(estimates: Sequence[Estimate]) -> Plot:
    above = [one.high - one.value for one in estimates]
    below = [one.value - one.low for one in estimates]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1.4, "width": 3}


def _plain_ticks(estimates: Sequence[Estimate]) -> Plot:
    """Ticks of a logarithmic axis as plain numbers, as many as there is room for."""
    low = min(one.low for one in estimates)
    high = max(one.high for one in estimates)
    digits = (1, 1.5, 2, 3, 5, 7) if high < 8 * low else (1, 2, 5) if high < 100 * low else (1,)
    powers = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 2)
    ticks = [digit * 10.0**power for power in powers for digit in digits]
    ticks = [tick for tick in ticks if 0.9 * low <= tick <= 1.1 * high]
    return {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
