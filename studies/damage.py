"""What a run says about damage, and how much of it hangs on the size, the samples and the models one happens to take.

    python -m studies.damage RUN … [--eps SMALL LARGE] [--figures FOLDER] [--page FILE]

Everything comes from the run's ledger through advrisk's Python interface; nothing is attacked again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from advrisk.core.errors import AdvriskError
from studies.page import fill
from studies.sections import blocks_of, findings, lines_of


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.damage", description="Damage of models, read from runs.")
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="the folder of a run")
    parser.add_argument("--eps", nargs=2, type=float, metavar=("SMALL", "LARGE"), help="sizes (default: the study's)")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw into this folder (needs chromium)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write everything into this page, too")
    given = parser.parse_args(words)
    try:
        blocks: dict[str, list[str]] = {}
        for folder in given.runs:
            found = findings(folder, given.eps)
            print("\n".join(lines_of(found)))
            blocks |= blocks_of(found)
            if given.figures:
                from studies.figures import draw

                for path in draw(found.damage, found.settled, folder=given.figures, name=found.name):
                    print(f"wrote {path}")
        if given.page:
            fill(given.page, blocks)
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"studies.damage: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
