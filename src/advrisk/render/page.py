"""Sections as content of the page's template, which shows every question alike (`sections.html`)."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from advrisk.core.estimate import Estimate
from advrisk.core.sections import (
    Alternatives,
    Cell,
    Column,
    Figure,
    Front,
    Group,
    Headline,
    Pictures,
    Section,
    Summary,
    Table,
    Text,
    Tile,
    Unanswered,
    Value,
    every,
)
from advrisk.core.values import value_lines

_CARDS = 4  # columns, from which the rows of a table become cards on a phone
_SHARES = ("share", "risk")
_WIDE = 6  # … and from which it takes the page's width


def page_finding(
    name: str, title: str, sections: Sequence[Section] | Unanswered, *, question: str = ""
) -> dict[str, Any]:
    """One question: its anchor and title, its answer in one sentence, and what is folded under it."""
    shown = {"anchor": name, "title": title, "question": question or title}
    if isinstance(sections, Unanswered):
        return shown | {"answer": f"No answer: {str(sections).rstrip('.')}.", "parts": []}
    first = next((one for one in sections if isinstance(one, Headline)), None)
    parts = page_parts(name, [one for one in sections if one is not first])
    return shown | {"answer": first.text if first else "", "parts": parts}


def page_figures(name: str, sections: Sequence[Section]) -> dict[str, Any]:
    """The figures by the names under which the page's script finds them."""
    return {figure_name(name, one): dict(one.spec) for one in every(sections) if isinstance(one, Figure)}


def page_tile(tile: Tile) -> dict[str, Any]:
    """A tile: a number with its interval below the heading of its column, and a bar where it is a share."""
    facts = [
        {"name": column.heading, "lines": value_lines(value, column), "bar": _bar(value, column)}
        for column, value in tile.facts
    ]
    return {"model": tile.model, "badges": tile.badges, "facts": facts}


def _bar(value: Value, column: Column) -> dict[str, float]:
    """Per cent of a bar's width: the value, and the ends of its interval."""
    if column.kind not in _SHARES or not isinstance(value, Estimate):
        return {}
    ends = {"value": value.value, "low": value.low, "high": value.high}
    return {name: round(100 * min(1.0, max(0.0, end)), 1) for name, end in ends.items()}


def figure_name(name: str, figure: Figure) -> str:
    """The name of a figure among all of a run."""
    return f"{name} {figure.key}"


def page_parts(name: str, sections: Iterable[Section], within: str = "") -> list[dict[str, Any]]:
    """`within` is the anchor of the group that holds them."""
    return [_part(name, one, within or name) for one in sections if not isinstance(one, Summary | Front)]


def _part(name: str, section: Section, within: str) -> dict[str, Any]:
    kind = {"is_a": type(section).__name__}
    match section:
        case Table():
            return kind | _table(section)
        case Figure():
            return kind | vars(section) | {"name": figure_name(name, section)}
        case Alternatives():
            figures = [{"name": figure_name(name, one), "title": one.label or one.title} for one in section.figures]
            first = section.figures[0].description
            return kind | {"label": section.label, "figures": figures, "description": first}
        case Pictures():
            pictures = [
                {
                    "source": _address(one.png),
                    "before": _address(one.before) if one.before else "",
                    "description": one.description,
                    "caption": one.caption,
                }
                for one in section.pictures
            ]
            return kind | {"title": section.title, "pictures": pictures}
        case Group():
            anchor = f"{within}-{section.key}"
            return kind | vars(section) | {"parts": page_parts(name, section.sections, anchor), "anchor": anchor}
        case Headline() | Summary() | Front() | Text():
            return kind | vars(section)


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "shape": _shape(len(table.columns)),
        "columns": [{"heading": one.heading, "text": one.kind == "text"} for one in table.columns],
        "rows": [
            {
                "mark": _mark(row[0]) if _mark(row[0]) in ("total", "spare") else "",
                "cells": [
                    {"lines": value_lines(value, column), "mark": _mark(value), "depth": _depth(value)}
                    for value, column in zip(row, table.columns, strict=True)
                ],
            }
            for row in table.rows
        ],
        "notes": table.notes,
    }


def _shape(n_columns: int) -> str:
    """The classes of a table of so many columns."""
    return " ".join(name for name, so in (("cards", n_columns >= _CARDS), ("small", n_columns < _WIDE)) if so)


def _mark(value: Value) -> str:
    return value.mark if isinstance(value, Cell) else ""


def _depth(value: Value) -> int:
    return value.depth if isinstance(value, Cell) else 0
