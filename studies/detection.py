"""What runs say about detectors: against each objective, against all arms at once, and once the attacker knows them.

    python -m studies.detection RUN … [--figures FOLDER] [--page FILE]

Everything comes from the runs' ledgers through advrisk's Python interface; nothing is attacked or scored again. A run
that cannot be read leaves the page as it is.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from advrisk.core.errors import AdvriskError
from studies.detection_findings import findings
from studies.detection_sections import Findings, compared, lines_of
from studies.page import fenced, fill

PLACES = ("detection", "compared")  # of a page


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.detection", description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="the folder of a run with detectors")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw into this folder (needs chromium)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write everything into this page, too")
    given = parser.parse_args(words)
    try:
        found = [each for folder in given.runs for each in findings(folder)]
        told = {each.name: lines_of(each) for each in found}
        print("\n".join(line for lines in told.values() for line in lines))
        print("\n".join(compared(found)))
        figures = _drawn(found, given.figures)
        if given.page:
            fill(given.page, dict(zip(PLACES, (_sections(told, figures, given.page), compared(found)), strict=True)))
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"studies.detection: {error}", file=sys.stderr)
        return 2
    return 0


def _drawn(found: Sequence[Findings], folder: Path | None) -> dict[str, Path]:
    if folder is None:
        return {}
    from studies.detection_figure import draw

    figures = {each.name: draw(each, folder) for each in found}
    for path in figures.values():
        print(f"wrote {path}")
    return figures


def _sections(told: dict[str, list[str]], figures: dict[str, Path], page: Path) -> list[str]:
    """A section of the page for each model of each run."""
    lines = []
    for name, text in told.items():
        lines += ["", f"### {name}", ""]
        if name in figures:
            link = Path(os.path.relpath(figures[name], page.parent)).as_posix()
            lines += [f"![AUROC of each detector against each objective and against all arms: {name}]({link})", ""]
        lines += fenced(text[:-1])
    return [*lines, ""]


if __name__ == "__main__":
    sys.exit(main())
