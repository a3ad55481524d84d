"""What all figures share: colours, dashes and marks of models, and names as labels that plotly shows as text."""

from collections.abc import Iterable, Mapping
from typing import Any

from advrisk.core.names import cut, one_line

Plot = dict[str, Any]  # a plotly figure, or a piece of one
Places = Mapping[str, int]  # model -> its number in all figures of a report

# Okabe & Ito's palette, told apart by people with colour-blindness; dashes and symbols differ, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
PATTERNS = ("", "/", ".", "x")  # of bars
GRAY = "#888888"
_LABEL = 40  # characters
_LINE = 18  # characters of a line of a label
_SCALE_ROWS = 6  # of a heat map, below which a scale of colours is squashed; its cells say their numbers


def model_places(models: Iterable[str]) -> dict[str, int]:
    """Numbers by which models get their colours: the same for the same models, in whatever order they are shown."""
    return {model: place for place, model in enumerate(sorted(set(models)))}


def places_of(models: Iterable[str], places: Places | None) -> dict[str, int]:
    """The given numbers; models that have none come after all others."""
    known = dict(places or {})
    missing = model_places(model for model in models if model not in known)
    return known | {model: len(known) + place for model, place in missing.items()}


def cycled(choices: tuple[str, ...], place: int) -> str:
    """The choice for the n-th thing; after the last, the first again."""
    return choices[place % len(choices)]


def few_marks(place: int) -> Plot:
    """A few marks along a line, for those who do not see its colour."""
    return {"symbol": cycled(SYMBOLS, place), "size": 8, "maxdisplayed": 8, "color": cycled(COLOURS, place)}


def line_of(place: int) -> Plot:
    """The colour and the dashes of a model's line."""
    return {"color": cycled(COLOURS, place), "dash": cycled(DASHES, place)}


def named(name: str, width: int = _LABEL) -> Plot:
    """The name of a trace: shortened in the legend, and in full (`meta`) for those who take the data away."""
    return {"name": short_label(name, width), "meta": {"series": name}}


def edge_of(name: str, part: str) -> Plot:
    """One edge of the band around a trace of that name."""
    return {"meta": {"series": name, "part": part}, "legendgroup": name, "showlegend": False, "hoverinfo": "skip"}


def short_label(name: str, width: int = _LABEL) -> str:
    """A name cut in the middle, as a label."""
    return plain_label(cut(name, width))


def plain_label(name: str) -> str:
    """plotly reads a little HTML in labels, and %{…} in some; names are text."""
    return one_line(name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("%", "&#37;")


def wrapped_label(name: str, width: int = _LINE) -> str:
    """A name in two lines at most, broken after a separator where there is one; what is longer is cut in the middle."""
    if len(name) <= width:
        return plain_label(name)
    if len(name) > 2 * width:
        name = f"{name[: width - 1]}…{name[-width:]}"
    cuts = [place + 1 for place, letter in enumerate(name[:width]) if letter in " -,._/"]
    cut = max((place for place in cuts if len(name) - place <= width), default=width)
    return f"{plain_label(name[:cut].rstrip())}<br>{plain_label(name[cut:].lstrip())}"


def heat_map_room(rows: list[str]) -> Plot:
    """Of a heat map: its scale only if there is room for one, and names of rows in lines that a phone has room for."""
    return {"showscale": len(rows) >= _SCALE_ROWS, "meta": {"narrow": [wrapped_label(name) for name in rows]}}


def upper_ticks(names: list[str]) -> Plot:
    """An axis of names above a heat map; many of them, or those that would overlap, are written aslant."""
    few = len(names) <= 4
    slant = {"autotickangles": [0, -40, -90]} if few else {"tickangle": -40}
    return {
        "side": "top",
        "type": "category",
        "automargin": True,
        **slant,
        "tickvals": names,
        "ticktext": [wrapped_label(name) if few else short_label(name, 24) for name in names],
    }


def category_axis(names: list[str]) -> Plot:
    """An axis of names, of which long ones are shown shortened."""
    return {
        "type": "category",
        "tickmode": "array",
        "tickvals": names,
        "ticktext": [short_label(name) for name in names],
    }
