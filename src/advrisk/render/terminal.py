"""Sections as text for a terminal; where it is too narrow for a table, every row becomes a block of text."""

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from advrisk.core.names import one_line
from advrisk.core.sections import Cell, Column, Group, Headline, Section, Table, Text, Value, unfolded
from advrisk.core.values import value_lines

_PROSE = 18  # characters that a column of prose has at least
_BETWEEN = 3  # characters that a column takes beside what stands in it
_KEPT = "\u00a0"  # a blank at which no line ends
_INTERVAL = re.compile(r"(\[-?[\d.,]+,) (?=-?[\d.,]+\])")


def print_sections(sections: Iterable[Section], console: Console | None = None, *, details: bool = False) -> None:
    """Print sections in their order; a terminal shows no figures and no pictures.

    With `details`, what is folded away elsewhere, every column, and how to read it.
    """
    console = console or Console()
    for one in sections if details else unfolded(sections):
        match one:
            case Headline():
                indented(console, one.text, by=0)
            case Text() if details or not one.how:
                _print_text(one, console)
            case Table():
                _print_table(one if details else one.brief, console)
            case Group() if _printed(one, details=details):
                indented(console, one.title, by=0, style="bold")
                print_sections(one.sections, console, details=details)
            case _:
                pass


def _printed(section: Section, *, details: bool) -> bool:
    """Whether a terminal has anything to show of a section."""
    match section:
        case Group():
            held = section.sections if details else unfolded(section.sections)
            return any(_printed(one, details=details) for one in held)
        case Text():
            return not section.how  # which says how to read what stands beside it
        case Table():
            return bool(section.rows)
        case _:
            return isinstance(section, Headline)


def _print_text(text: Text, console: Console) -> None:
    if text.title:
        indented(console, f"{text.title}:", by=0)
    for sentence in text.sentences:
        indented(console, f"· {sentence}", by=0)


def _print_table(table: Table, console: Console) -> None:
    if not table.rows:
        return
    indented(console, f"{table.title}:", by=0)
    rows = [
        ["\n".join(_lines(value, column)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    prose = [place for place, column in enumerate(table.columns) if place and column.kind == "text"]
    print_fitting(console, [column.heading for column in table.columns], rows, prose=prose)
    for note in table.notes:
        indented(console, f"· {note}", by=0)


def print_fitting(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], *, prose: Collection[int] = ()
) -> None:
    """Print a table in which no line of a cell is broken, headings and columns of `prose` by words at most; or blocks,
    headed by the first cell."""
    wanted = [max(map(_longest, cells)) for cells in zip(columns, *rows, strict=True)]
    needed = [
        max(_longest_word(name), *(_needed(cell, prose=place in prose) for cell in cells))
        for place, (name, *cells) in enumerate(zip(columns, *rows, strict=True))
    ]
    spare = console.width - sum(needed) - _BETWEEN * len(columns)
    if spare < 0:
        _print_blocks(console, columns, rows)
        return
    table = new_table(*columns)
    for place in sorted(range(len(columns)), key=lambda place: place not in prose):
        wider = min(spare, wanted[place] - needed[place])
        table.columns[place].width = needed[place] + wider
        spare -= wider
    for row in rows:
        table.add_row(*plain_cells(row))
    console.print(table)


def indented(console: Console, text: str, *, by: int, style: str = "") -> None:
    """Print text under a heading; lines that it must be broken into are indented further than its first.

    No line ends between a number and its unit, or within an interval.
    """
    wrapped = textwrap.fill(
        _INTERVAL.sub(f"\\1{_KEPT}", text.replace(" %", f"{_KEPT}%")),
        console.width,
        initial_indent=" " * by,
        subsequent_indent=" " * (by + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )
    shown = RichText(printable(wrapped.replace(_KEPT, " ")), style=style)
    console.print(shown, markup=False, highlight=False, emoji=False, soft_wrap=True)


def new_table(*columns: str) -> RichTable:
    """A table in the style of the house, to be filled."""
    made = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(RichText(printable(column)), overflow="fold")
    return made


def plain_cells(values: Sequence[Any]) -> list[RichText]:
    """A row of a table: names from outside are text, never markup."""
    return [RichText(printable(str(value))) for value in values]


def printable(text: str) -> str:
    """Text without what would steer the terminal; lines stay lines."""
    return "\n".join(one_line(line) for line in text.split("\n"))


def _lines(value: Value, column: Column) -> Iterator[str]:
    """The lines of a value, a branch of a tree indented."""
    indent = "  " * value.depth if isinstance(value, Cell) else ""
    return (f"{indent}{line}" for line in value_lines(value, column))


def _longest(text: str) -> int:
    return max(map(len, text.split("\n")))


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _needed(cell: str, *, prose: bool) -> int:
    """How wide a column must be for a cell."""
    return max(_longest_word(cell), min(_longest(cell), _PROSE)) if prose else _longest(cell)


def _print_blocks(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for head, *cells in rows:
        indented(console, head, by=2)
        named = (f"{name}: {_in_one_line(cell)}" for name, cell in zip(columns[1:], cells, strict=True))
        indented(console, "; ".join(named), by=4)


def _in_one_line(cell: str) -> str:
    """The interval of a number stands behind it."""
    return cell.replace("\n[", " [").replace("\n", ", ")
