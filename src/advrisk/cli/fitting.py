"""Tables that fit the terminal: where it is too narrow for one, every line of it becomes a block of text."""

from collections.abc import Sequence

from rich.console import Console

from advrisk.cli.tables import indented, new_table, plain

_BETWEEN = 3  # characters that a column takes beside what stands in it


def print_fitting(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table in which no line of a cell is broken, headings by words at most; or blocks, the first cell as heading."""
    wanted = [max(map(_longest, cells)) for cells in zip(columns, *rows, strict=True)]
    needed = [
        max(map(_longest, ("\n".join(name.split()), *cells))) for name, *cells in zip(columns, *rows, strict=True)
    ]
    spare = console.width - sum(needed) - _BETWEEN * len(columns)
    if spare < 0:
        _print_blocks(console, columns, rows)
        return
    table = new_table(*columns)
    for column, least, most in zip(table.columns, needed, wanted, strict=True):
        column.width = least + min(spare, most - least)
        spare -= column.width - least
    for row in rows:
        table.add_row(*plain(row))
    console.print(table)


def _longest(text: str) -> int:
    return max(map(len, text.split("\n")))


def _print_blocks(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for head, *cells in rows:
        indented(console, head, by=2)
        told = (f"{name}: {_in_one_line(cell)}" for name, cell in zip(columns[1:], cells, strict=True))
        indented(console, "; ".join(told), by=4)


def _in_one_line(cell: str) -> str:
    """The interval of a number stands behind it."""
    return cell.replace("\n[", " [").replace("\n", ", ")
