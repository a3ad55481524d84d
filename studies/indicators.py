"""What runs say about risks in deployments: which model, why, what if, and what robustness numbers tell of it.

    python -m studies.indicators RUN … [--figures FOLDER] [--page FILE]

Everything comes from the runs' ledgers through advrisk's Python interface; nothing is run again. A run that cannot be
read leaves the page as it is.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advrisk.core.errors import AdvriskError
from studies.indicators_claims import claims
from studies.indicators_findings import Findings, findings
from studies.indicators_robustness import masked, robustness
from studies.indicators_sections import drivers, losses, models, risks, what_ifs
from studies.page import fenced, fill

SECTIONS: Mapping[str, Callable[[Findings], list[str]]] = {  # place of a page -> what it holds
    "models": models,
    "risks": risks,
    "losses": losses,
    "drivers": drivers,
    "what-if": what_ifs,
    "robustness": robustness,
    "masked": masked,
}
FIGURES = {  # place of a page -> what stands below the picture
    "figure-risks": "Risk of every model in every scenario, made of the contributions of its branches, with intervals",
    "figure-indicators": "Single indicators over the models, with intervals",
    "figure-causes": "Risk given each cause and given each kind of noise, for every model",
    "figure-arms": "Mean loss of every arm for every model",
    "figure-ranks": "Ranks of the models by robustness numbers and by risk in each scenario",
}
PLACES = (*SECTIONS, *FIGURES, "compared")


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.indicators", description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="the folder of a run with scenarios")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw into this folder (needs chromium)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write everything into this page, too")
    given = parser.parse_args(words)
    try:
        found = [findings(folder) for folder in given.runs]
        told = {place: [section(each) for each in found] for place, section in SECTIONS.items()}
        compared = [line for each in found for line in claims(each)]
        print("\n\n".join("\n".join(lines) for sections in told.values() for lines in sections))
        print("\n" + "\n".join(compared))
        figures = _drawn(found, given.figures)
        if given.page:
            fill(given.page, {**_tables(told), **_pictures(figures, given.page), "compared": compared})
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"studies.indicators: {error}", file=sys.stderr)
        return 2
    return 0


def _drawn(found: Sequence[Findings], folder: Path | None) -> dict[str, list[Path]]:
    """Place -> a picture for each run."""
    if folder is None:
        return {}
    from studies.indicators_figures import draw

    drawn = [draw(each, folder) for each in found]
    for path in (path for each in drawn for path in each.values()):
        print(f"wrote {path}")
    return {place: [each[place] for each in drawn if place in each] for place in FIGURES}


def _tables(told: Mapping[str, list[list[str]]]) -> dict[str, list[str]]:
    return {place: [line for lines in sections for line in fenced(lines)] for place, sections in told.items()}


def _pictures(figures: Mapping[str, list[Path]], page: Path) -> dict[str, list[str]]:
    """Links to pictures; without any, those of a page stay."""
    return {
        place: [f"![{FIGURES[place]}]({Path(os.path.relpath(path, page.parent)).as_posix()})" for path in paths]
        for place, paths in figures.items()
    }


if __name__ == "__main__":
    sys.exit(main())
