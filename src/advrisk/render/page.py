"""Sections as content of the page's template, which shows every question alike (`sections.html`)."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from advrisk.core.sections import Figure, Headline, Pictures, Section, Table, Text, Unanswered
from advrisk.render.values import value_lines


def page_finding(name: str, title: str, sections: Sequence[Section] | Unanswered) -> dict[str, Any]:
    """One question: its anchor and title, and its parts in order, or why there is no answer."""
    if isinstance(sections, Unanswered):
        parts: list[dict[str, Any]] = [{"is_a": "Unanswered", "text": f"{str(sections).rstrip('.')}."}]
    else:
        parts = [_part(name, one) for one in sections]
    return {"anchor": name, "title": title, "parts": parts}


def page_figures(name: str, sections: Sequence[Section]) -> dict[str, Any]:
    """The figures by the names under which the page's script finds them."""
    return {_figure_name(name, one): dict(one.spec) for one in sections if isinstance(one, Figure)}


def _part(name: str, section: Section) -> dict[str, Any]:
    kind = {"is_a": type(section).__name__}
    match section:
        case Headline():
            return kind | {"text": section.text}
        case Text():
            return kind | vars(section)
        case Table():
            return kind | _table(section)
        case Figure():
            return kind | vars(section) | {"name": _figure_name(name, section)}
        case Pictures():
            pictures = [
                {
                    "source": f"data:image/png;base64,{b64encode(one.png).decode()}",
                    "description": one.description,
                    "caption": one.caption,
                }
                for one in section.pictures
            ]
            return kind | {"title": section.title, "pictures": pictures}


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "columns": [{"heading": one.heading, "text": one.kind == "text"} for one in table.columns],
        "rows": [[value_lines(*pair) for pair in zip(row, table.columns, strict=True)] for row in table.rows],
        "notes": table.notes,
    }


def _figure_name(name: str, figure: Figure) -> str:
    return f"{name} {figure.key}"
