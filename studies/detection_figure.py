"""The figure of `studies.detection`: what each detector is worth against each objective, and against all arms."""

from pathlib import Path
from typing import Any

from advrisk.core.palette import COLOURS, SYMBOLS, Plot
from advrisk.risk.detection.groups import MULTI_ARMED as MULTI
from studies.detection_sections import OBJECTIVES, Findings
from studies.figures import COMMON, FRAME, photograph

_ROW = 56  # pixels
_MULTI_MARK = {"color": "#222222", "symbol": "star", "size": 15}
_CHANCE_MARK: dict[str, Any] = {"color": "#888888", "symbol": "line-ns", "size": 16}


def draw(found: Findings, folder: Path) -> Path:
    """Write the figure of one model as a PNG file."""
    target = folder / f"{found.name}.png"
    photograph({target: dots(found)})
    return target


def dots(found: Findings) -> Plot:
    """A row for each detector, best first; a mark for each column, and one for chance."""
    judged = sorted(found.judged, key=lambda each: _value(each.columns[MULTI].auroc, missing=-1.0), reverse=True)
    names = [each.name for each in judged]
    traces = []
    for place, (objective, shown) in enumerate(OBJECTIVES.items()):
        if all(objective in each.columns for each in judged):
            values = [_value(each.columns[objective].auroc) for each in judged]
            mark = {"color": COLOURS[place], "symbol": SYMBOLS[place], "size": 10, "opacity": 0.85}
            traces.append(_trace(shown, names, values, mark))
    multi = [each.columns[MULTI].auroc for each in judged]
    traces.append(_trace(MULTI, names, [_value(each) for each in multi], _MULTI_MARK) | _bars(multi))
    chance = [each.columns[MULTI].chance_auroc for each in judged]
    traces.append(
        _trace("chance, multi-armed", names, chance, _CHANCE_MARK | {"line": {"width": 3, "color": "#888888"}})
    )
    layout = {
        "xaxis": {"title": {"text": "AUROC, averaged over norms"}, "range": [0, 1.02]} | FRAME,
        "yaxis": {"autorange": "reversed", "categoryorder": "array", "categoryarray": names} | FRAME,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "margin": {"l": 190, "r": 20, "t": 40, "b": 60},
        "width": 900,
        "height": 120 + _ROW * len(names),
    }
    return {"data": traces, "layout": COMMON | layout}


def _trace(name: str, rows: list[str], values: list[Any], mark: dict[str, Any]) -> Plot:
    return {"type": "scatter", "mode": "markers", "name": name, "x": values, "y": rows, "marker": mark}


def _bars(estimates: list[Any]) -> Plot:
    """The intervals of estimates, those that there are."""
    above = [each.high - each.value if each else 0 for each in estimates]
    below = [each.value - each.low if each else 0 for each in estimates]
    bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    return {"error_x": bars | {"thickness": 1.5, "color": "#222222"}}


def _value(estimate: Any, *, missing: float | None = None) -> Any:
    return missing if estimate is None else estimate.value
