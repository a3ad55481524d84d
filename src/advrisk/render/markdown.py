"""Sections as Markdown, for a pull request: of a long table the first rows; figures stand in the report only."""

from collections.abc import Iterable, Iterator, Sequence

from advrisk.core.names import cut, cut_words
from advrisk.core.sections import Group, Headline, Section, Table, Text, unfolded
from advrisk.core.values import value_text
from advrisk.render.marks import escaped

MOST_ROWS = 20  # of a table
_NAME = 60  # characters


def markdown_lines(title: str, sections: Sequence[Section]) -> list[str]:
    """A heading and what is below it; nothing where there is nothing to show."""
    lines = list(_lines(sections))
    return [f"### {_words(title)}", "", *lines] if lines else []


def _lines(sections: Iterable[Section]) -> Iterator[str]:
    for one in unfolded(sections):
        match one:
            case Headline():
                yield from (_words(one.text), "")
            case Text() if not one.how:
                yield from (f"**{_words(one.title)}**", "") if one.title else ()
                yield from (*(f"- {_words(sentence)}" for sentence in one.sentences), "")
            case Table():
                yield from _table(one.brief)
            case Group():
                if inner := list(_lines(one.sections)):
                    yield from (f"#### {_words(one.title)}", "", *inner)
            case _:
                pass


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
