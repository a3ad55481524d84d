"""Runs the commands of documentation pages and writes what they print into the pages, so that the two cannot differ.

Run: python docs/run_pages.py [--check] [PAGE …]

A block with a title is written to a file of that name, a block of `sh` is run in the folder of these files, and so is
a Python file that stands directly above a block of `text`. A block of `text` holds the output of what ran last: all of
it, or the part from its first line to its last. `--check` writes nothing and compares with numbers masked, because
the last digits depend on the machine.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
# Pages whose commands run as they stand. Others name your own models, a key of yours, or hours of work.
PAGES = (
    *("tutorial", "damage", "damage-method", "evasion", "evasion-method", "detection", "detection-method"),
    *("indicators", "risk-tensors", "survival", "certificates", "search", "measures", "data", "gate", "compare"),
)

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
_RULED = re.compile(r"[─\s]+")


class PageError(Exception):
    """A command of a page failed, or what it printed has no place there."""


@dataclass(frozen=True)
class Change:
    """A block of a page whose words are no longer what its command prints."""

    line: int
    before: str
    after: str


def refreshed(text: str, folder: Path, *, width: int | None = None) -> str:
    """The page with what its commands print now, run in this folder."""
    columns = width or page_width(text)
    parts, end, script = [], 0, ""
    output, shown = "", True
    for block in _BLOCK.finditer(text):
        kind, title, body = block.groups()
        if title:
            (folder / title).write_text(body, encoding="utf-8")
            script = f"python {title}" if title.endswith(".py") else ""
        elif kind == "sh" or (kind == "text" and script):
            output, shown, script = run(script if kind == "text" else body, folder, columns), False, ""
        if kind == "text" and (part := excerpt(output, body)):
            parts += [text[end : block.start(3)], part]
            end, shown = block.end(3), True
        elif kind == "text" and not shown:
            raise PageError(f"the block\n{body}is no part of the output\n{output}")
    return "".join([*parts, text[end:]])


def page_width(text: str) -> int:
    """80 columns, or 100 where more than a tenth of the page's lines need them."""
    lines = [line for kind, _, body in _BLOCK.findall(text) if kind == "text" for line in body.splitlines()]
    return 80 if sum(len(line) > 80 for line in lines) <= len(lines) / 10 else 100


def run(command: str, folder: Path, columns: int) -> str:
    """What a command prints, as on a terminal of that width."""
    environment = os.environ | {
        "COLUMNS": str(columns),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1, 4) or "Traceback" in done.stderr:  # 1 and 4 are verdicts
        raise PageError(f"exit code {done.returncode} of\n{command}{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n") + "\n"


def excerpt(output: str, block: str) -> str:
    """The part of an output that a block shows, from the line most like its first to the one most like its last.

    It is empty where no line of the output is like either of them.
    """
    lines, shown = output.splitlines(), block.splitlines()
    first = _nearest(shown[0], lines, 0)
    last = None if first is None else _nearest(shown[-1], lines, first + len(shown) - 1, start=first)
    if first is None or last is None:
        return ""
    while last + 1 < len(lines) and _goes_with(lines[last + 1], lines[last]):
        last += 1
    return "\n".join(lines[first : last + 1]) + "\n"


def _goes_with(line: str, before: str) -> bool:
    """No block ends amid like rows or a wrapped note, however its lines were wrapped before."""
    return masked(line) == masked(before) or (before.startswith("·") and line.startswith("  "))


def _nearest(wanted: str, lines: Sequence[str], near: int, *, start: int = 0) -> int | None:
    """The line most like the one that is wanted; of equal ones the nearest to a place."""
    likeness = {
        place: difflib.SequenceMatcher(None, masked(wanted), masked(line)).ratio()
        for place, line in enumerate(lines)
        if place >= start
    }
    best = max(likeness.values(), default=0)
    equal = [place for place, one in likeness.items() if one == best]
    return min(equal, key=lambda place: abs(place - near)) if best >= 0.6 else None


def masked(text: str) -> str:
    """The words without their numbers, and without what only follows from the width of these."""
    words = _NUMBER.sub("#", _RULED.sub(" ", text))
    return " ".join(words.split())


def changes(before: str, after: str) -> Iterator[Change]:
    """The blocks of two versions of a page whose words differ."""
    for old, new in zip(_BLOCK.finditer(before), _BLOCK.finditer(after), strict=True):
        if masked(old[3]) != masked(new[3]):
            yield Change(before.count("\n", 0, old.start()) + 1, old[3], new[3])


def main(words: Sequence[str] | None = None) -> int:
    """Refresh or check pages; 1 where a checked page is stale, 2 where a command of it fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"by default: {', '.join(PAGES)}")
    parser.add_argument("--check", action="store_true", help="write nothing; compare words, not numbers")
    given = parser.parse_args(words)
    stale = 0
    for name in given.pages or PAGES:
        page = DOCS / f"{name}.md"
        before = page.read_text(encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as folder:
                after = refreshed(before, Path(folder))
        except PageError as error:
            print(f"{page}: {error}", file=sys.stderr)
            return 2
        if not given.check:
            page.write_text(after, encoding="utf-8")
        for change in changes(before, after):
            stale += given.check
            difference = difflib.unified_diff(change.before.splitlines(), change.after.splitlines(), lineterm="", n=0)
            print("\n".join([f"{page}:{change.line}: other words", *list(difference)[2:]]))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
