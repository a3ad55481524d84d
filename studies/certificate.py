"""What two runs certify: the largest eps of every model, against a searched attack and against a stronger one.

    python -m studies.certificate SEARCHED STRONGER [--figures FOLDER] [--page FILE]

Everything comes from the runs' ledgers through advrisk's Python interface; nothing is run again. A run that cannot be
read leaves the page as it is.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advrisk.core.errors import AdvriskError
from studies.certificate_findings import Findings, findings
from studies.certificate_sections import claims, curves, price, printed, search, sizes
from studies.page import fenced, fill

SECTIONS: Mapping[str, Callable[[Findings], list[str]]] = {  # place of a page -> what it holds
    "sizes": sizes,
    "curves": curves,
    "search": search,
    "printed": printed,
    "price": price,
}
CAPTION = "p and the share of broken samples against eps for every model, on the left NES, on the right PGD"
PLACES = (*SECTIONS, "figure-curves", "compared")


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.certificate", description=__doc__.splitlines()[0])
    parser.add_argument("searched", metavar="SEARCHED", type=Path, help="the folder of a run with a search")
    parser.add_argument("stronger", metavar="STRONGER", type=Path, help="that of a run with other attacks")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw into this folder (needs chromium)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write everything into this page, too")
    given = parser.parse_args(words)
    try:
        found = findings(given.searched, given.stronger)
        told = {place: section(found) for place, section in SECTIONS.items()}
        compared = claims(found)
        print("\n\n".join("\n".join(lines) for lines in (*told.values(), compared)))
        blocks = {place: fenced(lines) for place, lines in told.items()} | {"compared": compared}
        if given.figures:
            blocks["figure-curves"] = _drawn(found, given.figures, given.page)
        if given.page:
            fill(given.page, blocks)
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"studies.certificate: {error}", file=sys.stderr)
        return 2
    return 0


def _drawn(found: Findings, folder: Path, page: Path | None) -> list[str]:
    """A link to the picture."""
    from studies.certificate_figures import draw

    picture = draw(found, folder)
    print(f"wrote {picture}")
    beside = page.parent if page else folder
    return [f"![{CAPTION}]({Path(os.path.relpath(picture, beside)).as_posix()})"]


if __name__ == "__main__":
    sys.exit(main())
