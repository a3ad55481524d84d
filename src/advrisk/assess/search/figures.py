"""Figures of searches: how the worst grew round by round, and the failure rate over the settings."""

from math import log
from typing import Any

from advrisk.core.palette import COLOURS, Plot, plain_label
from advrisk.ledger.searches import SearchRecord, Trial

_GRID = 24  # cells of a heat map along each side


def trajectory(one: SearchRecord) -> Plot:
    """The failure rate of every setting in its order, and the largest so far among those that met all samples."""
    seen = [(place + 1, trial) for place, trial in enumerate(one.trials) if trial.n]
    largest, worst = 0.0, []
    for _, trial in seen:
        largest = max(largest, trial.failures / trial.n if trial.n + trial.n_errors >= one.n_samples else 0.0)
        worst.append(largest)
    places = [place for place, _ in seen]
    tried = {
        "type": "scatter",
        "mode": "markers",
        "name": "tried",
        "x": places,
        "y": [trial.rate for _, trial in seen],
        "text": [
            f"{plain_label(trial.text)}<br>{trial.failures} of {trial.n}, round {trial.round}" for _, trial in seen
        ],
        "marker": {
            "size": [11 if trial.frozen else 7 for _, trial in seen],
            "color": [COLOURS[1] if trial.frozen else COLOURS[0] for _, trial in seen],
            "symbol": ["circle" if trial.n >= one.n_samples else "circle-open" for _, trial in seen],
        },
        "hovertemplate": "%{text}<extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "worst so far",
        "x": places,
        "y": worst,
        "line": {"shape": "hv", "color": COLOURS[1], "width": 2},
        "hoverinfo": "skip",
    }
    return {"data": [line, tried], "layout": _layout({"title": {"text": "settings tried"}}, _rates())}


def surface(one: SearchRecord) -> dict[str, Plot]:
    """The failure rate over two parameters as a heat map with what was tried on it; else over each one by itself.

    By the names of the parameters.
    """
    seen = [trial for trial in one.trials if trial.n]
    names = [str(axis["name"]) for axis in one.axes]
    if len(names) == 2:
        return {" and ".join(names): _heat_map(one, seen)}
    return {name: _partial(axis, seen) for name, axis in zip(names, one.axes, strict=True)}


def _heat_map(one: SearchRecord, seen: list[Trial]) -> Plot:
    """Each cell has the rate of the nearest setting that was tried."""
    across, up = one.axes
    positions = [(_position(across, trial), _position(up, trial)) for trial in seen]
    centres = [(place + 0.5) / _GRID for place in range(_GRID)]
    z = [[_nearest(x, y, positions, seen) for x in centres] for y in centres]
    colours = {"colorscale": "Cividis", "cmin": 0}
    heat = {
        "type": "heatmap",
        "x": [_value(across, place) for place in centres],
        "y": [_value(up, place) for place in centres],
        "z": z,
        "zmin": 0,
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": "failures"}, "tickformat": ".0%"},
        "hoverinfo": "skip",
    }
    points = _points(seen, [trial.setting[across["name"]] for trial in seen], [t.setting[up["name"]] for t in seen])
    points["marker"] |= {"color": [trial.rate for trial in seen], **colours, "line": {"color": "white", "width": 1}}
    return {"data": [heat, points], "layout": _layout(_axis(across), _axis(up)) | {"height": 420}}


def _nearest(x: float, y: float, positions: list[tuple[float, float]], seen: list[Trial]) -> float | None:
    if not positions:
        return None
    _, trial = min(zip(positions, seen, strict=True), key=lambda pair: (pair[0][0] - x) ** 2 + (pair[0][1] - y) ** 2)
    return trial.rate


def _partial(axis: Any, seen: list[Trial]) -> Plot:
    points = _points(seen, [trial.setting[axis["name"]] for trial in seen], [trial.rate for trial in seen])
    return {"data": [points], "layout": _layout(_axis(axis), _rates())}


def _points(seen: list[Trial], x: list[float], y: list[Any]) -> Plot:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "text": [f"{plain_label(trial.text)}<br>{trial.failures} of {trial.n}" for trial in seen],
        "marker": {
            "size": [13 if trial.frozen else 8 for trial in seen],
            "symbol": ["star" if trial.frozen else "circle" for trial in seen],
            "color": COLOURS[0],
        },
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _position(axis: Any, trial: Trial) -> float:
    """Where a value stands between the ends of its range."""
    value, low, high = trial.setting[axis["name"]], axis["low"], axis["high"]
    return log(value / low) / log(high / low) if axis["log"] else (value - low) / (high - low)


def _value(axis: Any, position: float) -> float:
    low, high = float(axis["low"]), float(axis["high"])
    return low * (high / low) ** position if axis["log"] else low + position * (high - low)


def _axis(axis: Any) -> Plot:
    return {"title": {"text": plain_label(axis["name"])}, "type": "log" if axis["log"] else "linear"}


def _rates() -> Plot:
    return {"title": {"text": "share of samples broken"}, "tickformat": ".0%", "rangemode": "tozero"}


def _layout(xaxis: Plot, yaxis: Plot) -> Plot:
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
    return {"xaxis": xaxis, "yaxis": yaxis, "legend": legend, "height": 340}
