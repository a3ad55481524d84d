"""Sections as Markdown, short enough for a pull request: of each question its headline and the tables that lead."""

import re
from collections.abc import Iterable, Sequence

from advrisk.core.names import cut_words, one_line
from advrisk.core.sections import Section, Table, Text, headline_of, read_first
from advrisk.core.values import value_text

MOST_ROWS = 20  # of a table
_NAME = 60  # characters
_UNSEEN = "\u200b"  # a space of no width: a page shows nothing, and what stands around it is no link
_BEGINNING = re.compile(r"[#>=:]|[+-](?!\d)|\d+[.)](?=\s|$)")  # of a heading, a quote, a list, a rule
# Addresses, mentions, and numbers of issues become links on many pages, even behind a backslash or as an entity.
_LINKED = re.compile(
    r"(?i)(?<=http)(?=s?:)|(?<=ftp)(?=:)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=www)(?=\.)|(?<=[@#])(?=\w)|(?<=\bgh)(?=-\d)"
)
_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$&<>]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def markdown_lines(title: str, sections: Sequence[Section]) -> list[str]:
    """A heading, the headline, and the tables that lead; sentences where there is none of these."""
    tables = [one for one in read_first(sections) if isinstance(one, Table) and one.rows]
    leading = [one for place, one in enumerate(tables) if one.lead or place == 0]
    head = headline_of(sections)
    lines = [_words(head), ""] if head else []
    lines += [line for one in leading for line in _table(one.brief)]
    if not lines:
        texts = (one for one in read_first(sections) if isinstance(one, Text) and not one.how)
        lines = [line for one in texts for sentence in one.sentences for line in (_words(sentence), "")]
    return [f"### {_words(title)}", "", *lines] if lines else []


def _table(table: Table) -> list[str]:
    if not table.rows:
        return []
    marks = ["---" if column.kind == "text" else "---:" for column in table.columns]
    rows = [
        [_words(value_text(value, column)) for value, column in zip(row, table.columns, strict=True)]
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


def escaped(text: object) -> str:
    """Text that Markdown, and the HTML it allows, show as it is: on one line, no link, no mention, no command."""
    flat = _flat(text)
    if _BEGINNING.match(flat):
        flat = f"{_UNSEEN}{flat}"
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), _LINKED.sub(_UNSEEN, flat))


def code(name: str, *, cell: bool = False) -> str:
    """A name as code, between more backticks than it holds in a row; within a `cell` of a table `|` needs a mark."""
    flat = _flat(name).replace("|", "\\|" if cell else "|")
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    space = " " if "`" in flat else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _flat(text: object) -> str:
    return " ".join(one_line(str(text)).split())
