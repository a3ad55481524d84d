"""Pages whose numbers a program writes: the lines between `<!-- name -->` and `<!-- /name -->` are replaced."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from advrisk.core.errors import RunError
from advrisk.core.names import did_you_mean

Blocks = Mapping[str, Sequence[str]]  # name of a place -> its lines

_PLACE = re.compile(r"<!-- ([\w-]+) -->")


def fill(page: Path, blocks: Blocks) -> None:
    """Write blocks into their places of a page; all of them, or none."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise RunError(f"{page}: cannot be read: {error.strerror}") from None
    for name, lines in blocks.items():
        text = filled(text, name, lines, where=str(page))
    unfinished = page.with_name(f".{page.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(page)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise RunError(f"{page}: cannot be written: {error.strerror}") from None


def filled(text: str, name: str, lines: Sequence[str], *, where: str = "the page") -> str:
    """The text with these lines in the place of that name."""
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(first) != 1 or text.count(last) != 1 or text.index(last) < text.index(first):
        known = places(text)
        hint = did_you_mean(name, known) if known else "it has none"
        raise RunError(f"{where}: needs one place between {first} and {last}; {hint}")
    before, rest = text.split(first)
    return "\n".join([before + first, *lines, last]) + rest.split(last)[1]


def places(text: str) -> tuple[str, ...]:
    """The names of all places."""
    return tuple(_PLACE.findall(text))


def fenced(lines: Sequence[str]) -> list[str]:
    """Lines as a block of plain text."""
    return ["```text", *lines, "```"]
