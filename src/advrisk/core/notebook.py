"""Results as HTML for notebooks: a headline and a table, without scripts, in the colours of the page they stand on."""

from collections.abc import Mapping, Sequence
from functools import singledispatch
from html import escape
from typing import Any

MOST = 20  # rows that are shown

_LEFT = "text-align:left;vertical-align:top;padding:.2em .8em .2em 0;max-width:32em;overflow-wrap:anywhere"
_LINE = "border-bottom:1px solid rgba(128,128,128,.45)"


@singledispatch
def notebook_html(found: Any) -> str:
    """What a notebook shows of a result: its rows, unless a function is registered for its type."""
    columns: Mapping[str, str] = found.columns
    rows = [[row.get(name) for name in columns] for row in found.rows()]
    return html_block(type(found).__name__, html_table(list(columns), rows))


def html_block(headline: str, *parts: str, notes: Sequence[str] = ()) -> str:
    """A headline, parts that are HTML already, and notes below."""
    told = "".join(f'<p style="margin:.3em 0;opacity:.8">{escape(note)}</p>' for note in notes if note)
    head = f'<p style="margin:.3em 0"><strong>{escape(headline)}</strong></p>'
    return f'<div style="color:inherit;overflow-x:auto">{head}{"".join(parts)}{told}</div>'


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str = "") -> str:
    """A table of text and numbers, of which nothing is taken for HTML; of many rows, the first."""
    if not rows:
        return ""
    head = "".join(f'<th style="{_LEFT};{_LINE}" scope="col">{escape(name)}</th>' for name in columns)
    lines = [f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows[:MOST]]
    if (n_more := len(rows) - MOST) > 0:
        lines.append(f'<tr><td style="{_LEFT}" colspan="{len(columns)}">… and {n_more} more</td></tr>')
    above = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    return (
        f'<table style="color:inherit;background:none;border-collapse:collapse;margin:.5em 0">{above}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(value: object) -> str:
    return f'<td style="{_LEFT}">{escape(_text(value))}</td>'


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
