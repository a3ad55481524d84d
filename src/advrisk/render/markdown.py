"""Sections as Markdown, short enough for a pull request: of each question its headline and its first table."""

from collections.abc import Iterable, Iterator, Sequence

from advrisk.core.names import cut, cut_words
from advrisk.core.sections import Group, Headline, Section, Table, unfolded
from advrisk.core.values import value_text
from advrisk.render.marks import escaped

MOST_ROWS = 20  # of a table
_NAME = 60  # characters


def markdown_lines(title: str, sections: Sequence[Section]) -> list[str]:
    """A heading, the headline and the first table of what is read first; nothing where there is neither."""
    shown = list(_shown(sections))
    lines = [line for one in shown[:1] if isinstance(one, Headline) for line in (_words(one.text), "")]
    table = next((one for one in shown if isinstance(one, Table) and one.rows), None)
    lines += _table(table.brief) if table else []
    return [f"### {_words(title)}", "", *lines] if lines else []


def _shown(sections: Iterable[Section]) -> Iterator[Section]:
    for one in unfolded(sections):
        yield from _shown(one.sections) if isinstance(one, Group) else (one,)


def _table(table: Table) -> list[str]:
    if not table.rows:
        return []
    marks = ["---" if column.kind == "text" else "---:" for column in table.columns]
    rows = [
        [escaped(cut(value_text(value, column), _NAME)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows[:MOST_ROWS]
    ]
    n_more = len(table.rows) - MOST_ROWS
    more = [f"And {n_more} more rows.", ""] if n_more > 0 else []
    notes = [line for note in table.notes for line in (_words(note), "")]
    head = [_words(column.heading) for column in table.columns]
    return [f"**{_words(table.title)}**", "", _line(head), _line(marks), *map(_line, rows), "", *more, *notes]


def _words(sentence: str) -> str:
    """A sentence or title, in which no name is longer than in a table."""
    return escaped(cut_words(sentence, _NAME))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
