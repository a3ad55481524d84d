"""`advrisk list`: registered parts as text for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from advrisk.render.terminal import Terminal, indented


def print_parts(described: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Registered parts with what they need and take."""
    console = Terminal()
    for kind, parts in described.items():
        console.print(kind, style="bold")
        if not parts:
            indented(console, f"none yet; a package brings its own by the entry point advrisk.{kind}", by=2)
        for part in parts:
            console.print(f"  {part['name']}", style="bold cyan")
            use_when = f"use it when: {part['use_when']}" if part["use_when"] else ""
            facts = [part["summary"], use_when, *part["facts"]]
            facts += [f"{parameter['shown']}" for parameter in part["parameters"]]
            for fact in filter(None, facts):  # a part may have no docstring
                indented(console, fact, by=4)
