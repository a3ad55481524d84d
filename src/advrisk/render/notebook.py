"""Sections as HTML for notebooks: a headline and tables, without scripts."""

from collections.abc import Sequence

from advrisk.core.notebook import html_block, html_table
from advrisk.core.sections import Section, Table, Text, headline_of, read_first
from advrisk.core.values import value_text


def sections_html(sections: Sequence[Section]) -> str:
    """The first headline above, every table, and the sentences below."""
    shown = list(read_first(sections))
    notes = [sentence for one in shown if isinstance(one, Text) and not one.how for sentence in one.sentences]
    notes += [note for one in shown if isinstance(one, Table) for note in one.notes]
    tables = [_table(one.brief) for one in shown if isinstance(one, Table)]
    return html_block(headline_of(sections), *tables, notes=list(dict.fromkeys(notes)))


def _table(table: Table) -> str:
    rows = [[value_text(value, column) for value, column in zip(row, table.columns, strict=True)] for row in table.rows]
    return html_table([column.heading for column in table.columns], rows, caption=table.title)
