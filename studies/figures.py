"""Figures for the documentation: plotly specifications, photographed in a headless Chromium."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.core.errors import RunError
from advrisk.core.palette import COLOURS, DASHES, Plot
from advrisk.risk.convergence import DAMAGE, MEAN, SMALLEST, Convergence
from advrisk.risk.damage import success_ratio

_SCALE = 1.5  # pixels of the picture for each of the page
_FONT = {"family": "DejaVu Sans, Arial, sans-serif", "size": 13, "color": "#222222"}
_POINTS = 400
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def draw(damage: DamageAssessment, settled: Convergence, *, folder: Path, name: str) -> list[Path]:
    """Both figures of a run as PNG files."""
    figures = {
        "curves": success_and_evasion(damage),
        "settling": settling(settled, [row.model for row in damage.models]),
    }
    targets = {folder / f"{name}-{kind}.png": figure for kind, figure in figures.items()}
    photograph(targets)
    return list(targets)


def success_and_evasion(damage: DamageAssessment) -> Plot:
    """ASR of every model and, as a broad line, Psi_avg, over the size on a logarithmic axis."""
    found = np.concatenate(list(damage.distances.by_model.values()))
    sized = found[(found > 0) & np.isfinite(found)]
    low = min(float(np.quantile(sized, 0.002)), 0.5 * damage.thresholds[0])
    sizes = np.unique([*np.geomspace(low, 1.05 * sized.max(), _POINTS), *damage.thresholds])
    lines = []
    if damage.comparison is not None:
        undetected = np.asarray(damage.comparison.evasion(sizes))
        lines.append(_line("Ψ<sub>avg</sub> = 1 − mean ASR", sizes, undetected, {"color": "#BBBBBB", "width": 7}))
    lines += [
        _line(row.model, sizes, success_ratio(damage.distances.by_model[row.model], sizes), _style(place))
        for place, row in enumerate(damage.models)
    ]
    axis = {"type": "log", "title": {"text": f"size τ of the perturbation ({damage.distances.norm})"}, **_ticks(sizes)}
    layout = {
        "xaxis": axis | FRAME,
        "yaxis": {"title": {"text": "ASR(τ): share of samples broken; Ψ(τ)"}, "range": [0, 1.01], "tickformat": ".0%"}
        | FRAME,
        "shapes": [_upright(eps) for eps in damage.thresholds],
        "annotations": [_above(eps) for eps in damage.thresholds],
        "legend": {"x": 1.02, "y": 1, "traceorder": "normal"},
        "margin": {"l": 70, "r": 20, "t": 30, "b": 55},
    }
    return {"data": lines, "layout": COMMON | layout | {"width": 900, "height": 430}}


def settling(settled: Convergence, order: Sequence[str]) -> Plot:
    """Damage, an attack success rate, minimal and mean adversarial distance over the number of samples, with bands."""
    ratios = [name for name in settled.bands[settled.models[0]] if name.startswith("attack success rate at ")]
    panels = {
        "relative damage" if settled.relative else "damage": DAMAGE,
        f"ASR at {ratios[0].split()[-1]}": ratios[0],
        "minimal distance (MPS)": SMALLEST,
        "mean distance": MEAN,
    }
    shown = settled.n >= 5
    lines, layout = [], dict(COMMON)
    for place, measure in enumerate(panels.values(), start=1):
        for rank, model in enumerate(order):
            band = settled.bands[model][measure]
            parts = (settled.n[shown], band.low[shown], band.middle[shown], band.high[shown])
            lines += _banded(model, rank, place, parts, legend=place == 1)
        drawn = np.concatenate(
            [band[shown] for model in order for band in vars(settled.bands[model][measure]).values()]
        )
        layout |= _panel(place, sizes=drawn if measure in (SMALLEST, MEAN) else None, most=int(settled.n[-1]))
    layout["annotations"] = [_title(place, title) for place, title in enumerate(panels, start=1)]
    layout |= {"legend": {"x": 1.02, "y": 1}, "margin": {"l": 75, "r": 20, "t": 30, "b": 50}}
    return {"data": lines, "layout": layout | {"width": 900, "height": 640}}


def photograph(figures: dict[Path, Plot], *, colours: int | None = None) -> None:
    """Draw one figure after another in a page and take a picture of each; nothing is loaded from elsewhere.

    With at most so many `colours` (256 or fewer) the files are much smaller.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise RunError(
            "figures are drawn by chromium, and there is none on the path; install it, or leave --figures out"
        )
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        raise RunError("figures need the package playwright: pip install 'advrisk[test]'") from None
    from plotly.offline import get_plotlyjs

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(device_scale_factor=_SCALE)
        page.set_content("<body style='margin:0'><div id='figure'></div>")
        page.add_script_tag(content=get_plotlyjs())
        for target, figure in figures.items():
            size = figure["layout"]
            page.set_viewport_size({"width": size["width"], "height": size["height"]})
            page.evaluate("figure => Plotly.newPlot('figure', figure.data, figure.layout, {staticPlot: true})", figure)
            target.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(target))
            if colours is not None:
                _reduce(target, colours)
        browser.close()


def _reduce(picture: Path, colours: int) -> None:
    from PIL import Image

    with Image.open(picture) as full:
        small = full.convert("RGB").quantize(colours, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(picture, optimize=True)


FRAME: dict[str, Any] = {"showline": True, "linecolor": "#888888", "gridcolor": "#E6E6E6", "zeroline": False}
COMMON: dict[str, Any] = {"font": _FONT, "paper_bgcolor": "white", "plot_bgcolor": "white"}


def _style(place: int) -> dict[str, Any]:
    return {"color": COLOURS[place % len(COLOURS)], "dash": DASHES[place % len(DASHES)], "width": 2.2}


def _line(name: str, x: Any, y: Any, style: dict[str, Any]) -> Plot:
    line = {"shape": "hv", **style}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x.tolist(), "y": y.tolist(), "line": line}


def _ticks(sizes: Any) -> dict[str, Any]:
    """Powers of ten, and some times these where there is room, as plain numbers; and the range of the sizes."""
    low, high = float(sizes[0]), float(sizes[-1])
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    digits = (1, 2, 3, 4, 5, 7) if high < 10 * low else (1, 2, 5) if high < 2000 * low else (1,)
    ticks = [digit * 10.0**power for power in powers for digit in digits]
    ticks = [tick for tick in ticks if low <= tick <= high]
    text = [f"{tick:.6f}".rstrip("0").rstrip(".") for tick in ticks]
    return {"tickvals": ticks, "ticktext": text, "range": [np.log10(low), np.log10(high)]}


def _upright(eps: float) -> Plot:
    style = {"color": "#444444", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": eps, "x1": eps, "y0": 0, "y1": 1, "yref": "paper", "line": style}


def _above(eps: float) -> Plot:
    place = {"x": np.log10(eps), "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    return place | {"text": f"τ = {eps:.3g}"}


def _banded(name: str, rank: int, place: int, parts: Sequence[Any], *, legend: bool) -> list[Plot]:
    """A band and its middle in one of the panels."""
    n, low, middle, high = (np.asarray(part, dtype=np.float64) for part in parts)
    told = np.isfinite(middle)
    n, low, middle, high = n[told], low[told], middle[told], high[told]
    axes = {"xaxis": f"x{place}", "yaxis": f"y{place}", "legendgroup": name, "type": "scatter", "mode": "lines"}
    colour = COLOURS[rank % len(COLOURS)]
    outline = {"x": [*n, *n[::-1]], "y": [*high, *low[::-1]]}
    band = outline | {"fill": "toself", "fillcolor": f"{colour}2E", "line": {"width": 0}, "showlegend": False}
    line = {"x": n.tolist(), "y": middle.tolist(), "line": _style(rank), "name": name, "showlegend": legend}
    return [axes | band, axes | line]


def _panel(place: int, *, sizes: Any, most: int) -> Plot:
    """The axes of one of four panels; sizes, where given, are shown on a logarithmic one."""
    left, top = place % 2 == 1, place <= 2
    numbers = [n for n in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000) if n <= most]
    x: Plot = {"type": "log", "tickvals": numbers, "ticktext": [str(n) for n in numbers]}
    x |= {"domain": [0, 0.45] if left else [0.55, 1], "anchor": f"y{place}", "range": [np.log10(5), np.log10(most)]}
    y: Plot = {"domain": [0.56, 1] if top else [0, 0.44], "anchor": f"x{place}", "rangemode": "tozero"}
    if not top:
        x["title"] = {"text": "number of samples n"}
    if sizes is not None:
        y |= {"type": "log", **_ticks([0.75 * np.nanmin(sizes), np.nanmax(sizes)])}
    return {f"xaxis{place}": x | FRAME, f"yaxis{place}": y | FRAME}


def _title(place: int, title: str) -> Plot:
    middle, top = (0.225 if place % 2 else 0.775), (1.0 if place <= 2 else 0.44)
    at = {"x": middle, "y": top, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
    return at | {"text": title, "showarrow": False}
