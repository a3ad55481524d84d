"""Writes docs/commands.md from the command line's own help texts, so that the two cannot differ.

Run: python docs/generate_commands.py
"""

from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from advrisk.cli.app import app
from advrisk.cli.groups import HELP

WIDTH = 100  # of the help texts, whatever the terminal
PAGE = Path(__file__).with_name("commands.md")

_INTRODUCTION = """\
# Commands

This page is made by `python docs/generate_commands.py` from the help texts of the program. To change a
text, change it in `src/advrisk/cli/` and run that command again.

What the exit codes mean is said in [Running](running.md#exit-codes).
"""


def commands_page() -> str:
    """The whole page: every command with its help text, nested ones after their parent."""
    command = get_command(app)
    context = _context(command, "advrisk", None)
    sections = [f"## {path}\n\n```text\n{text}\n```\n" for path, text in _help_texts(command, context)]
    return "\n".join([_INTRODUCTION, *sections])


def _help_texts(command: TyperCommand | TyperGroup, context: typer.Context) -> Iterator[tuple[str, str]]:
    text = command.get_help(context)
    yield context.command_path, "\n".join(line.rstrip() for line in text.splitlines())
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            yield from _help_texts(child, _context(child, name, context))


def _context(command: TyperCommand | TyperGroup, name: str, parent: typer.Context | None) -> typer.Context:
    width = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    return typer.Context(command, info_name=name, parent=parent, **width, **HELP)


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
