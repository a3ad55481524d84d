"""The figure of `studies.two_gaussians`: clean and attacked points, and where each detector sees an attack."""

from pathlib import Path

import numpy as np

from advrisk.core.palette import COLOURS, Plot
from studies.figures import COMMON, FRAME, photograph
from studies.two_gaussians_example import EPS, Detector, Example

_REACH = 6.5  # of the axes
_GRID = 121
_GAP = 0.03  # between panels
_MARKS = {"clean": ("#999999", "circle"), "ace": (COLOURS[0], "diamond"), "gini": (COLOURS[1], "cross")}
_NAMES = {"clean": "clean points", "ace": "ACE, eps 1.2", "gini": "Gini, eps 5"}
_SHADES = [[0, "#FFFFFF"], [1, "#FBE3C8"]]


def draw(found: Example, target: Path) -> None:
    """Write the figure as a PNG file."""
    photograph({target: plane(found)})


def plane(found: Example) -> Plot:
    """A panel for each detector; shaded is what it takes for an attack."""
    data, layout = [], dict(COMMON)
    shown = {"clean": found.points.x[~found.points.train], **found.adversarial}
    width = (1 - 2 * _GAP) / len(found.detectors)
    for place, detector in enumerate(found.detectors.values(), start=1):
        axes = {"xaxis": f"x{place}", "yaxis": f"y{place}"}
        data += [axes | _region(detector)]
        data += [axes | _points(name, x, legend=place == 1) for name, x in shown.items()]
        left = (place - 1) * (width + _GAP)
        layout |= _axes(place, [left, left + width])
    titles = [f"trained on {_NAMES[kind].split(',')[0] if kind in EPS else kind}" for kind in found.detectors]
    layout["annotations"] = [_title(place, width, title) for place, title in enumerate(titles)]
    layout |= {"legend": {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.1, "yanchor": "top"}}
    return {
        "data": data,
        "layout": layout | {"margin": {"l": 40, "r": 10, "t": 30, "b": 60}, "width": 900, "height": 380},
    }


def _region(detector: Detector) -> Plot:
    axis = np.linspace(-_REACH, _REACH, _GRID)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2).astype(np.float32)
    seen = (detector.score(points) > 0).astype(int).reshape(_GRID, _GRID)
    return {
        "type": "heatmap",
        "x": axis.tolist(),
        "y": axis.tolist(),
        "z": seen.tolist(),
        "zmin": 0,
        "zmax": 1,
        "colorscale": _SHADES,
        "showscale": False,
    }


def _points(name: str, x: np.ndarray, *, legend: bool) -> Plot:
    colour, symbol = _MARKS[name]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": _NAMES[name],
        "legendgroup": name,
        "showlegend": legend,
        "x": x[:, 0].tolist(),
        "y": x[:, 1].tolist(),
        "marker": {"color": colour, "symbol": symbol, "size": 5, "opacity": 0.8},
    }


def _axes(place: int, domain: list[float]) -> Plot:
    x = {"domain": domain, "anchor": f"y{place}", "range": [-_REACH, _REACH], "dtick": 2}
    y = {"anchor": f"x{place}", "range": [-_REACH, _REACH], "dtick": 2, "showticklabels": place == 1}
    return {f"xaxis{place}": x | FRAME, f"yaxis{place}": y | FRAME}


def _title(place: int, width: float, title: str) -> Plot:
    at = {"x": place * (width + _GAP) + width / 2, "y": 1.0, "xref": "paper", "yref": "paper"}
    return at | {"xanchor": "center", "yanchor": "bottom", "text": title, "showarrow": False}
