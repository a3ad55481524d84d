"""HTML for notebooks: a headline and tables, without scripts, in the colours of the page they stand on."""

from collections.abc import Sequence
from html import escape

from advrisk.core.sections import Section, Table, Text, headline_of, read_first
from advrisk.core.values import value_text

MOST = 20  # rows that are shown

_LEFT = "text-align:left;vertical-align:top;padding:.2em .8em .2em 0;max-width:32em;overflow-wrap:anywhere"
_LINE = "border-bottom:1px solid rgba(128,128,128,.45)"


def sections_html(sections: Sequence[Section]) -> str:
    """The first headline above, every table, and the sentences below."""
    shown = list(read_first(sections))
    notes = [sentence for one in shown if isinstance(one, Text) and not one.how for sentence in one.sentences]
    notes += [note for one in shown if isinstance(one, Table) for note in one.notes]
    tables = [_table(one.brief) for one in shown if isinstance(one, Table)]
    return html_block(headline_of(sections), *tables, notes=list(dict.fromkeys(notes)))


def html_block(headline: str, *parts: str, notes: Sequence[str] = ()) -> str:
    """A headline, parts that are HTML already, and notes below."""
    below = "".join(f'<p style="margin:.3em 0;opacity:.8">{escape(note)}</p>' for note in notes if note)
    head = f'<p style="margin:.3em 0"><strong>{escape(headline)}</strong></p>'
    return f'<div style="color:inherit;overflow-x:auto">{head}{"".join(parts)}{below}</div>'


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """A table of texts, of which nothing is taken for HTML; of many rows, the first."""
    if not rows:
        return ""
    head = "".join(f'<th style="{_LEFT};{_LINE}" scope="col">{escape(name)}</th>' for name in columns)
    lines = [f"<tr>{''.join(_cell(text) for text in row)}</tr>" for row in rows[:MOST]]
    if (n_more := len(rows) - MOST) > 0:
        lines.append(f'<tr><td style="{_LEFT}" colspan="{len(columns)}">… and {n_more} more</td></tr>')
    above = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    return (
        f'<table style="color:inherit;background:none;border-collapse:collapse;margin:.5em 0">{above}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(text: str) -> str:
    return f'<td style="{_LEFT}">{escape(text)}</td>'


def _table(table: Table) -> str:
    rows = [[value_text(value, column) for value, column in zip(row, table.columns, strict=True)] for row in table.rows]
    return html_table([column.heading for column in table.columns], rows, caption=table.title)
