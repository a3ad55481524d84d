"""Sections as text for a terminal.

Where it is too narrow for a table, columns of words go below their rows; where that does not suffice, the table is cut
into several. Below 80 columns every row may become a block of text.
"""

import re
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import zip_longest
from typing import IO, Any, ClassVar, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text as RichText

from advrisk.core.names import visible, visible_line
from advrisk.core.sections import Cell, Column, Group, Headline, Section, Table, Text, Value, unfolded
from advrisk.core.values import value_lines

_BETWEEN = 3  # characters that a column takes beside what stands in it
_WRAPPED = 16  # characters of a line at least
_TABLES_FROM = 80  # columns of a terminal; in a narrower one a row may be a block of text
_KEPT = "\u00a0"  # a blank at which no line ends
_INTERVAL = re.compile(r"(\[-?[\d.,]+,) (?=-?[\d.,]+\])")


class Terminal(Console):
    """Standard output, or standard error, on which text from outside is text: no markup, and nothing that steers."""

    notes: ClassVar[bool] = True  # whether sentences beside headlines and tables are printed

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None) -> None:
        colour: Literal["auto"] | None = "auto" if file is None else None
        super().__init__(stderr=stderr, file=file, color_system=colour, markup=False, highlight=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def print_sections(sections: Iterable[Section], console: Console | None = None, *, details: bool = False) -> None:
    """Print sections in their order; a terminal shows no figures and no pictures.

    With `details`, what is folded away elsewhere, every column, and how to read it.
    """
    console = console or Terminal()
    for one in sections if details else unfolded(sections):
        match one:
            case Headline():
                indented(console, one.text, by=0)
            case Text() if Terminal.notes and (details or not one.how):
                _print_text(one, console)
            case Table():
                _print_table(one if details else one.brief, console)
            case Group() if _has_words(one, details=details):
                if one.title:
                    indented(console, one.title, by=0, style="bold")
                print_sections(one.sections, console, details=details)
            case _:
                pass


def printed(sections: Iterable[Section]) -> str:
    """Sections as a terminal of this width shows them, without its colours."""
    console = Terminal(file=StringIO())
    print_sections(sections, console)
    file: Any = console.file
    return str(file.getvalue()).rstrip("\n")


def _has_words(section: Section, *, details: bool) -> bool:
    """Whether there is something for a terminal, besides how to read what only pages show."""
    match section:
        case Group():
            held = section.sections if details else unfolded(section.sections)
            return any(_has_words(one, details=details) for one in held)
        case Table():
            return bool(section.rows)
        case Text():
            return not section.how
    return isinstance(section, Headline)


def has_more(sections: Iterable[Section]) -> bool:
    """Whether `details` would show more tables or columns."""
    return any(
        (one.folded and _has_words(one, details=True)) or has_more(one.sections)
        if isinstance(one, Group)
        else isinstance(one, Table) and any(column.detail for column in one.columns)
        for one in sections
    )


def _print_text(text: Text, console: Console) -> None:
    if text.title:
        indented(console, f"{text.title}:", by=0)
    for sentence in text.sentences:
        indented(console, f"· {sentence}", by=0)


def _print_table(table: Table, console: Console) -> None:
    if not table.rows:
        return
    if table.title:
        indented(console, f"{table.title}:", by=0)
    rows = [
        ["\n".join(_lines(value, column)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    wrapped = {place for place, column in enumerate(table.columns) if place and column.kind == "text"}
    _print_fitting(console, [visible_line(column.heading) for column in table.columns], rows, wrapped=wrapped)
    for note in table.notes if Terminal.notes else ():
        indented(console, f"· {note}", by=0)


def _print_fitting(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Container[int] = ()
) -> None:
    """Print a table in which no line of a cell is broken, but headings and `wrapped` columns by words.

    Or the table with the `wrapped` columns below their rows; or that with intervals in two lines, and the first column
    broken by words; or several tables, each of some columns; or, in a narrow terminal, blocks.
    """
    short = [place for place in range(len(columns)) if place not in wrapped]
    if (widths := _fitting(console.width, columns, rows, wrapped)) is not None:
        table = _new_table(*columns)
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        for row in rows:
            table.add_row(*_plain_cells([_folded(cell, width) for cell, width in zip(row, widths, strict=True)]))
        console.print(table)
        return
    ways = [(rows, ()), (_halved(rows), (0,))] if console.width >= _TABLES_FROM else [(rows, ())]
    for tried, of_words in ways if len(short) > 1 else ():
        widths = _fitting(console.width, _at(columns, short), [_at(row, short) for row in tried], of_words)
        if widths is not None:
            _print_words_below(console, columns, tried, dict(zip(short, widths, strict=True)))
            return
    _print_parts(console, columns, rows, short)


def _halved(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The same rows with intervals in two lines."""
    return [[_INTERVAL.sub("\\1\n", cell) for cell in row] for row in rows]


def _at(cells: Sequence[str], places: Sequence[int]) -> list[str]:
    return [cells[place] for place in places]


def _fitting(
    room: int, columns: Sequence[str], rows: Sequence[Sequence[str]], wrapped: Container[int] = ()
) -> list[int] | None:
    """The widths of the columns; None where the room does not suffice."""
    wanted = [max(map(_longest, cells)) for cells in zip(columns, *rows, strict=True)]
    widths = [
        max([_longest_word(name), *(_narrowest(cell) if place in wrapped else _longest(cell) for cell in cells)])
        for place, (name, *cells) in enumerate(zip(columns, *rows, strict=True))
    ]
    spare = room - sum(widths) - _BETWEEN * len(columns)
    if spare < -1:  # one blank fewer suffices, as none is needed behind the last column
        return None
    spare = max(0, spare)
    for text in (True, False):  # text needs room first
        places = [place for place in range(len(columns)) if (place in wrapped) is text]
        spare = _widen(widths, wanted, places, spare)
    return widths


def _print_words_below(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Mapping[int, int],
    below: Container[int] | None = None,
    *,
    head_above: bool = False,
) -> None:
    """A table of the columns that have a width; cells of the others, or of those `below`, are lines below their rows.

    With `head_above`, the first cell of a row is a line of its own above the others.
    """

    def print_row(cells: Sequence[str], style: str = "") -> None:
        if head_above:
            for line in cells[0].split("\n"):
                print_line(line, style)
            cells = ["", *cells[1:]]
        folded = [_folded(cells[place], width).split("\n") for place, width in widths.items()]
        for texts in zip_longest(*folded, fillvalue=""):
            print_line((" " * _BETWEEN).join(map(str.ljust, texts, widths.values())).rstrip(" "), style)

    def print_line(text: str, style: str = "") -> None:
        console.print(RichText(f" {text}", style=style), soft_wrap=True)

    console.print()
    print_row(columns, style="bold")
    print_line("─" * (sum(widths.values()) + _BETWEEN * (len(widths) - 1)))
    for row in rows:
        print_row(row)
        for place, cell in enumerate(row):
            if place not in widths and cell and (below is None or place in below):
                indented(console, f"{columns[place]}: {_in_one_line(cell)}", by=3)
    console.print()


def _print_parts(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], short: Sequence[int]) -> None:
    """Several tables, each of the first column and some others; blocks where the terminal is too narrow for tables."""
    least = {
        place: max([_longest_word(columns[place]), *(_longest(row[place]) for row in rows)]) for place in short[1:]
    }
    head = max([_longest_word(columns[0]), *(_longest(row[0]) for row in rows)])
    beside, above = (_parts(least, first, console.width) for first in (head, _BETWEEN))
    if console.width < _TABLES_FROM or not above:
        _print_blocks(console, columns, rows)
        return
    head_above = not beside or len(above) < len(beside)
    parts, words = above if head_above else beside, set(range(len(columns))) - set(short)
    for number, widths in enumerate(parts, 1):
        below = words if number == len(parts) else ()
        _print_words_below(console, columns, rows, widths, below, head_above=head_above)


def _parts(widths: Mapping[int, int], head: int, room: int) -> list[dict[int, int]]:
    """Columns in as many tables as they need, each with the first column; none where one column is too wide."""
    parts: list[dict[int, int]] = [{0: head}]
    for place, width in widths.items():
        if head + _BETWEEN + width >= room:
            return []
        if sum(parts[-1].values()) + width + _BETWEEN * len(parts[-1]) >= room:
            parts.append({0: head})
        parts[-1][place] = width
    return parts


def print_rows(rows: Sequence[Mapping[str, Any]], console: Console | None = None) -> None:
    """Print rows of any names, as of a query; what is null is left out."""
    console = console or Terminal()
    if not rows:
        indented(console, "no rows", by=0)
        return
    _print_fitting(
        console, [visible_line(name) for name in rows[0]], [[_raw(value) for value in row.values()] for row in rows]
    )


def _widen(widths: list[int], wanted: Sequence[int], places: Sequence[int], spare: int) -> int:
    """Give these columns what room there is, most to those that want most; returns what is left."""
    while spare and (short := [place for place in places if widths[place] < wanted[place]]):
        widths[max(short, key=lambda place: wanted[place] - widths[place])] += 1
        spare -= 1
    return spare


def indented(console: Console, text: str, *, by: int, style: str = "") -> None:
    """Print text under a heading; lines that it must be broken into are indented further than its first.

    No line ends between a number and its unit, or within an interval.
    """
    wrapped = textwrap.fill(
        _kept(visible(text)),
        console.width,
        initial_indent=" " * by,
        subsequent_indent=" " * (by + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )
    shown = RichText(wrapped.replace(_KEPT, " "), style=style)
    console.print(shown, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _kept(text: str) -> str:
    """Text in which a number and its unit, and an interval, are one word."""
    return _INTERVAL.sub(f"\\1{_KEPT}", text.replace(" %", f"{_KEPT}%").replace("≤ ", f"≤{_KEPT}"))


def _folded(cell: str, width: int) -> str:
    """A cell in lines of that width, broken by words."""
    made: list[str] = []
    wrapper = textwrap.TextWrapper(width, drop_whitespace=False, break_on_hyphens=False, break_long_words=False)
    for line in cell.split("\n"):
        first, *others = wrapper.wrap(_kept(line)) if len(line) > width else [line]
        made += [first.rstrip(" "), *(text for part in others if (text := part.strip(" ")))]
    return "\n".join(made).replace(_KEPT, " ")


def _new_table(*columns: str) -> RichTable:
    """A table in the style of the house, to be filled."""
    made = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(RichText(column), overflow="fold")
    return made


def _plain_cells(values: Sequence[Any]) -> list[RichText]:
    """A row of a table: names from outside are text, never markup."""
    return [RichText(str(value)) for value in values]


def _lines(value: Value, column: Column) -> Iterator[str]:
    """The lines of a value, a branch of a tree indented."""
    indent = "  " * value.depth if isinstance(value, Cell) else ""
    return (f"{indent}{visible_line(line)}" for line in value_lines(value, column))


def _longest(text: str) -> int:
    return max(map(len, text.split("\n")))


def _raw(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else visible_line(str(value))


def _longest_word(text: str) -> int:
    return max(map(len, re.split("[ \n]+", _kept(text))))


def _narrowest(text: str) -> int:
    """The width that a text needs which may be wrapped."""
    return max(_longest_word(text), min(_longest(text), _WRAPPED))


def _print_blocks(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for head, *cells in rows:
        deep = len(head) - len(head.lstrip(" "))  # of a branch of a tree
        indented(console, _in_one_line(head.lstrip(" ")), by=2 + deep)
        named = (f"{name}: {_in_one_line(cell)}" for name, cell in zip(columns[1:], cells, strict=True) if cell)
        indented(console, "; ".join(named), by=4 + deep)


def _in_one_line(cell: str) -> str:
    """The interval of a number stands behind it."""
    return re.sub(r"\n *", ", ", cell.replace("\n[", " ["))
