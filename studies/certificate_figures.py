"""The picture of the case study of certificates: p and the share that broke against eps, for both attackers."""

from pathlib import Path
from typing import Any

from advrisk.assess.certificate.figures import p_curves
from advrisk.core.palette import Plot
from studies.certificate_findings import Attacked, Findings
from studies.figures import COMMON, FRAME, photograph

_DOTTED = {"color": "#888888", "width": 1.5, "dash": "dot"}
_COLOURS = 64


def draw(found: Findings, folder: Path) -> Path:
    """p against eps as a PNG file."""
    target = folder / f"{found.searched.name}-curves.png"
    photograph({target: curves(found)}, colours=_COLOURS)
    return target


def curves(found: Findings) -> Plot:
    """Above p, which must be below the dotted line, below the share that broke; the attackers beside each other."""
    lines: list[Plot] = []
    layout: dict[str, Any] = COMMON | {"shapes": [_alpha(place, one) for place, one in enumerate(found.both, start=3)]}
    for place, one in enumerate(found.both, start=1):
        own = p_curves(one.found, one.found.lists[0].norm)
        x, y = own["layout"]["xaxis"], own["layout"]["yaxis"]
        for line in own["data"]:
            named = line | {"legendgroup": line["name"], "showlegend": place == 1}
            lines.append(named | {"xaxis": f"x{place}", "yaxis": f"y{place}"})
            if "customdata" in line:
                shares = {"y": _shares(one, line), "showlegend": False}
                lines.append(named | shares | {"xaxis": f"x{place + 2}", "yaxis": f"y{place + 2}"})
        layout |= _panels(place, x, y)
    layout["annotations"] = [_title(place, one.family) for place, one in enumerate(found.both)]
    layout |= {"legend": {"x": 1.01, "y": 1}, "margin": {"l": 75, "r": 20, "t": 30, "b": 50}}
    return {"data": lines, "layout": layout | {"width": 940, "height": 640}}


def _shares(one: Attacked, line: Plot) -> list[float]:
    return [each[2] / one.found.calibration.n for each in line["customdata"]]


def _panels(place: int, x: Plot, y: Plot) -> Plot:
    """The axes of p and, below, of shares."""
    domain = [0, 0.47] if place == 1 else [0.53, 1]
    sizes = {name: value for name, value in x.items() if name != "title"}
    upper = FRAME | sizes | {"domain": domain, "anchor": f"y{place}"}
    lower = upper | {"anchor": f"y{place + 2}", "title": x["title"]}
    left: Plot = {"title": y["title"]} if place == 1 else {}
    right = {name: value for name, value in y.items() if name != "title"}
    share: Plot = {"domain": [0, 0.42], "anchor": f"x{place + 2}", "range": [-0.02, 1.02], "tickformat": ".0%"}
    if place == 1:
        share["title"] = {"text": "share that broke"}
    return {
        f"xaxis{place}": upper,
        f"xaxis{place + 2}": lower,
        f"yaxis{place}": FRAME | right | left | {"domain": [0.52, 1], "anchor": f"x{place}"},
        f"yaxis{place + 2}": FRAME | share,
    }


def _alpha(place: int, one: Attacked) -> Plot:
    at = {"xref": f"x{place} domain", "yref": f"y{place}", "x0": 0, "x1": 1}
    return at | {"type": "line", "y0": one.found.alpha, "y1": one.found.alpha, "line": _DOTTED}


def _title(place: int, family: str) -> Plot:
    at = {"x": 0.235 + 0.53 * place, "y": 1.0, "xref": "paper", "yref": "paper", "xanchor": "center"}
    return at | {"yanchor": "bottom", "showarrow": False, "text": f"<b>{family}</b>"}
