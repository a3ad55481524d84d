"""The figures of `studies.indicators`: final risks, single indicators, causes, all arms, and ranks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advrisk.assess.indicators.figures import CLEAN_GRAY, ordered_arms
from advrisk.core.estimate import Estimate
from advrisk.core.palette import COLOURS, Plot
from advrisk.risk.indicators.comparison import ScenarioResult
from studies.figures import COMMON, FRAME, photograph
from studies.indicators_findings import Findings
from studies.indicators_orders import risk_ranks
from studies.indicators_robustness import columns

INDICATORS = ("rain", "rotation", "gaussian-noise", "attacks")  # those that are drawn, where a run has them
NOISE = "noise"
_NAMES = 205  # pixels for names of models
_ROW = 21
_INK = "#222222"
_PALETTE = 200  # colours of a picture
_CHANGED = 6  # models whose rank changes most, drawn in colour


def draw(found: Findings, folder: Path) -> dict[str, Path]:
    """Place of a page -> a PNG file."""
    figures = {
        "figure-risks": final_risks(found),
        "figure-indicators": single_indicators(found),
        "figure-causes": causes(found),
        "figure-arms": all_arms(found),
        "figure-ranks": rank_lines(found),
    }
    kept = {place: figure for place, figure in figures.items() if figure["data"]}
    targets = {place: folder / f"{found.name}-{place.removeprefix('figure-')}.png" for place in kept}
    photograph({targets[place]: figure for place, figure in kept.items()}, colours=_PALETTE)
    return targets


def final_risks(found: Findings) -> Plot:
    """A panel for each scenario: what every branch of the first level contributes, and the interval of the whole."""
    order = found.models
    colours = _branch_colours(found.ranked)
    traces: list[Plot] = []
    layout: Plot = {}
    shown: set[str] = set()
    for place, one in enumerate(found.ranked, start=1):
        axes = {"xaxis": f"x{place}", "yaxis": f"y{place}"}
        for child in one.models[0].tree.children:
            values = [one.of(model).tree.at(child.path).contribution.value for model in order]
            bar = _bars(order, values, name=child.name, colour=colours[child.name])
            traces.append(axes | bar | {"legendgroup": child.name, "showlegend": child.name not in shown})
            shown.add(child.name)
        traces.append(axes | _whiskers(order, [one.of(model).risk for model in order]))
        layout |= _panel(place, len(found.ranked), order, percent=one.bounds == (0.0, 1.0))
    titles = [_title(place, len(found.ranked), one.scenario.name) for place, one in enumerate(found.ranked, start=1)]
    return _figure(traces, layout, titles, height=_height(order), barmode="stack")


def single_indicators(found: Findings) -> Plot:
    """A panel for each indicator: the risk given that it happens."""
    picked = {name: branch for name in INDICATORS if (branch := _branch(found, name))}
    order = found.models
    traces: list[Plot] = []
    layout: Plot = {}
    for place, (one, path) in enumerate(picked.values(), start=1):
        given = [one.branches[path].estimates[model] for model in order]
        axes = {"xaxis": f"x{place}", "yaxis": f"y{place}", "showlegend": False}
        colour = COLOURS[(place - 1) % len(COLOURS)]
        traces.append(axes | _bars(order, [each.value for each in given], name=path, colour=colour))
        traces.append(axes | _whiskers(order, given))
        layout |= _panel(place, len(picked), order, percent=one.bounds == (0.0, 1.0))
    titles = [_title(place, len(picked), name) for place, name in enumerate(picked, start=1)]
    return _figure(traces, layout, titles, height=_height(order), barmode="overlay")


def causes(found: Findings) -> Plot:
    """Bars side by side for every model: above, each cause of nature; below, each kind of noise."""
    one, order = found.uniform, found.models
    tree = one.models[0].tree
    groups = {"given each cause": [child.path for child in tree.children]}
    noises = [child for child in tree.children if child.name == NOISE]
    if noises:
        groups["given each kind of noise"] = [child.path for child in noises[0].children]
    traces: list[Plot] = []
    layout: Plot = {}
    for place, (title, paths) in enumerate(groups.items(), start=1):
        top = place == 1
        for rank, path in enumerate(paths):
            given = [one.branches[path].estimates[model] for model in order]
            traces.append(_upright(order, given, path.rpartition(".")[2], rank, place))
        domain = [0.0, 1.0] if len(groups) == 1 else [0.57, 1.0] if top else [0.0, 0.43]
        layout |= {
            f"xaxis{place}": {
                "anchor": f"y{place}",
                "tickangle": -35,
                "type": "category",
                "showticklabels": place == len(groups),
            }
            | FRAME,
            f"yaxis{place}": {
                "domain": domain,
                "anchor": f"x{place}",
                "tickformat": _format(one),
                "title": {"text": f"mean loss {title}", "font": {"size": 12}},
            }
            | FRAME,
            f"legend{place if place > 1 else ''}": {
                "orientation": "h",
                "x": 0,
                "y": domain[1] + 0.01,
                "yanchor": "bottom",
            },
        }
    margin = {"l": 70, "r": 20, "t": 40, "b": 130}
    return {
        "data": traces,
        "layout": COMMON
        | layout
        | {"barmode": "group", "bargap": 0.22, "margin": margin, "width": 1000, "height": 660},
    }


def all_arms(found: Findings) -> Plot:
    """The mean loss of every arm for every model: models in the order of the first scenario, arms by cause.

    Attacks without a limit of size are left out: sooner or later they break everything.
    """
    order = found.models
    by_model, bounds = found.found.arms[found.loss], found.ranked[0].bounds
    arms = [arm for arm in ordered_arms(found.found, found.loss) if arm not in found.unlimited]
    grid = [[_value(by_model[model].get(arm)) for model in order] for arm in arms]
    percent = bounds == (0.0, 1.0)
    text = [[_digits(value, percent=percent) for value in row] for row in grid]
    trace = {
        "type": "heatmap",
        "x": order,
        "y": [_arm(arm) for arm in arms],
        "z": grid,
        "text": text,
        "texttemplate": "%{text}",
        "textfont": {"size": 9},
        "colorscale": "Cividis",
        "zmin": bounds[0],
        "zmax": bounds[1] if percent else None,
        "xgap": 1,
        "ygap": 1,
        "colorbar": {
            "title": {"text": "mean loss" + (", %" if percent else ""), "side": "right"},
            "thickness": 12,
            "len": 0.4,
            "tickformat": _format(found.ranked[0]),
        },
    }
    layout = {
        "xaxis": {"side": "top", "type": "category", "tickangle": -40, "tickfont": {"size": 11}},
        "yaxis": {"type": "category", "autorange": "reversed", "tickfont": {"size": 10}, "dtick": 1},
        "margin": {"l": 185, "r": 10, "t": 140, "b": 10},
        "width": 900,
        "height": 150 + 15 * len(arms),
    }
    return {"data": [trace], "layout": COMMON | layout}


def rank_lines(found: Findings) -> Plot:
    """A line for every model through its ranks; in colour those whose place changes most.

    Robustness numbers that are alike for most models order nothing, and are left out.
    """
    order = found.models
    numbers = {one.name: one.ranks for one in columns(found) if 2 * len(set(one.ranks.values())) > len(order)}
    places = numbers | {f"risk:<br>{one.scenario.name}": risk_ranks(one) for one in found.ranked}
    if len(order) < 2:
        return {"data": [], "layout": {}}
    moved = sorted(order, key=lambda model: -_spread(places, model))[:_CHANGED]
    colours = {model: COLOURS[place % len(COLOURS)] for place, model in enumerate(moved)}
    rows = _rows(list(places.values()), order)
    traces = [
        _rank_line(model, list(places.values()), rows, colours) for model in sorted(order, key=moved.__contains__)
    ]
    grid = {"showgrid": True, "gridcolor": "#E6E6E6", "zeroline": False}
    at = {"tickvals": list(range(len(places))), "ticktext": list(places), "range": [-0.9, len(places) - 0.1]}
    layout = {
        "xaxis": grid | at | {"side": "top"},
        "yaxis": {"autorange": "reversed", "showgrid": False, "zeroline": False, "showticklabels": False},
        "annotations": _names(rows, colours),
        "showlegend": False,
        "margin": {"l": 120, "r": 120, "t": 60, "b": 15},
        "width": 900,
        "height": 100 + 27 * len(order),
    }
    return {"data": traces, "layout": COMMON | layout}


def _rows(places: Sequence[Mapping[str, int]], order: Sequence[str]) -> list[dict[str, int]]:
    """Where each model stands in each column: at its rank, those with the same rank below each other."""
    rows: list[dict[str, int]] = []
    for ranks in places:
        before = rows[-1] if rows else {model: place for place, model in enumerate(order)}
        known = sorted(
            (model for model in order if model in ranks), key=lambda model: (ranks[model], before.get(model, 0))
        )
        rows.append({model: place for place, model in enumerate(known, start=1)})
    return rows


def _rank_line(
    model: str, places: Sequence[Mapping[str, int]], rows: Sequence[Mapping[str, int]], colours: Mapping[str, str]
) -> Plot:
    known = [at for at, ranks in enumerate(places) if model in ranks]
    colour = colours.get(model, "#BBBBBB")
    return {
        "type": "scatter",
        "mode": "lines+markers+text",
        "name": model,
        "x": known,
        "y": [rows[at][model] for at in known],
        "line": {"color": colour, "width": 3 if model in colours else 1.5},
        "marker": {"size": 17, "color": colour},
        "text": [str(places[at][model]) for at in known],
        "textfont": {"size": 10, "color": "#FFFFFF" if model in colours else _INK},
    }


def _names(rows: Sequence[Mapping[str, int]], colours: Mapping[str, str]) -> list[Plot]:
    """Names of the models beside the first and the last column."""
    named = []
    for at, anchor, shift in ((0, "right", -14), (len(rows) - 1, "left", 14)):
        for model, row in rows[at].items():
            font = {"size": 12, "color": colours.get(model, "#555555")}
            place = {"x": at, "y": row, "xanchor": anchor, "xshift": shift, "showarrow": False}
            named.append(place | {"text": model, "font": font})
    return named


def _spread(places: Mapping[str, Mapping[str, int]], model: str) -> int:
    own = [ranks[model] for ranks in places.values() if model in ranks]
    return max(own) - min(own)


def _branch(found: Findings, name: str) -> tuple[ScenarioResult, str] | None:
    """Where an indicator of this name is: among all corruptions, or in a scenario."""
    for one in (found.uniform, *found.ranked):
        for path in one.branches:
            if path == name or path.endswith(f".{name}"):
                return one, path
    return None


def _branch_colours(results: Sequence[ScenarioResult]) -> dict[str, str]:
    names = dict.fromkeys(child.name for one in results for child in one.models[0].tree.children)
    named = [name for name in names if name != "clean"]
    return {name: COLOURS[place % (len(COLOURS) - 1)] for place, name in enumerate(named)} | {"clean": CLEAN_GRAY}


def _bars(order: Sequence[str], values: Sequence[float], *, name: str, colour: str) -> Plot:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(order),
        "x": list(values),
        "marker": {"color": colour},
    }


def _whiskers(order: Sequence[str], estimates: Sequence[Estimate]) -> Plot:
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {"size": 1, "color": _INK},
        "showlegend": False,
        "y": list(order),
        "x": [one.value for one in estimates],
        "error_x": _error(estimates),
    }


def _error(estimates: Sequence[Estimate]) -> Plot:
    above = [one.high - one.value for one in estimates]
    below = [one.value - one.low for one in estimates]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.3,
        "width": 3,
        "color": _INK,
    }


def _upright(order: Sequence[str], given: Sequence[Estimate], name: str, rank: int, place: int) -> Plot:
    bar = {"type": "bar", "name": name, "x": list(order), "y": [one.value for one in given]}
    error = _error(given) | {"thickness": 0.8, "width": 1.5}
    legend = "legend" if place == 1 else f"legend{place}"
    colour = COLOURS[rank % len(COLOURS)]
    return bar | {
        "error_y": error,
        "marker": {"color": colour},
        "xaxis": f"x{place}",
        "yaxis": f"y{place}",
        "legend": legend,
    }


def _panel(place: int, n: int, order: Sequence[str], *, percent: bool) -> Plot:
    """The axes of one of n panels beside each other; the first has the names of the models."""
    gap = 0.04
    width = (1 - gap * (n - 1)) / n
    start = (place - 1) * (width + gap)
    x: Plot = {"domain": [start, start + width], "anchor": f"y{place}", "rangemode": "tozero", "nticks": 5}
    x |= {"tickformat": ".0%" if percent else ".2~g"}
    y: Plot = {"anchor": f"x{place}", "autorange": "reversed", "type": "category", "categoryorder": "array"}
    y |= {"categoryarray": list(order), "showticklabels": place == 1, "showgrid": False}
    return {f"xaxis{place}": FRAME | x, f"yaxis{place}": FRAME | y}


def _title(place: int, n: int, text: str) -> Plot:
    middle = (place - 0.5) / n
    at = {"x": middle, "y": 1.0, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
    return at | {"text": f"<b>{text}</b>", "showarrow": False}


def _figure(traces: list[Plot], layout: Plot, titles: list[Plot], *, height: int, barmode: str) -> Plot:
    own = {
        "annotations": titles,
        "barmode": barmode,
        "bargap": 0.3,
        "legend": {"orientation": "h", "x": 0, "y": -0.08, "yanchor": "top", "traceorder": "normal"},
        "margin": {"l": _NAMES, "r": 20, "t": 30, "b": 70},
        "width": 1000,
        "height": height,
    }
    return {"data": traces, "layout": COMMON | layout | own}


def _height(order: Sequence[str]) -> int:
    return 130 + _ROW * len(order)


def _format(one: ScenarioResult) -> str:
    return ".0%" if one.bounds == (0.0, 1.0) else ".2~g"


def _digits(value: float | None, *, percent: bool) -> str:
    return "" if value is None else f"{100 * value:.0f}" if percent else f"{value:.2g}"


def _value(estimate: Any) -> float | None:
    return None if estimate is None else float(estimate.value)


def _arm(name: str) -> str:
    """Without what all arms of a family share: `transfer from plain` and the like."""
    return name.replace("-level-", " ").partition(",")[0]
