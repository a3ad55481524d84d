"""What two runs say about depth, defences and survival: how long until it breaks, why, and whether it is worth it.

    python -m studies.survival DEFENCES NETWORKS [--clock FILE] [--figures FOLDER] [--page FILE]

DEFENCES is a run of `survival-cifar10.yaml`, NETWORKS one of `survival-mnist.yaml`. Everything comes from their
ledgers; nothing is run again. A run that cannot be read leaves the page as it is.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advrisk.core.errors import AdvriskError
from studies import survival_sections as sections
from studies.page import fenced, fill
from studies.survival_claims import claims
from studies.survival_findings import Findings, findings

Section = Callable[[Findings], list[str]]

DEFENCES: Mapping[str, Section] = {  # place of a page -> what it holds of the run with defences
    "defences-rows": sections.rows,
    "defences-table": sections.defences,
    "defences-families": sections.families,
    "defences-depth": sections.depth,
    "defences-parts": sections.parts,
}
NETWORKS: Mapping[str, Section] = {  # the same of the run with many networks
    "networks-rows": sections.rows,
    "networks-table": sections.networks,
    "networks-families": sections.families,
    "networks-factors": sections.factors,
    "networks-depth": sections.depth,
    "networks-parts": sections.parts,
    "networks-one-step": sections.one_step,
    "networks-costs": sections.costs,
}
FIGURES = {  # place of a page -> what stands below the picture
    "figure-curves": "Share of PGD's attacks not yet successful, by depth, with the fit as a dotted line",
    "figure-factors": "How many times as long models last, by covariate, with intervals",
    "figure-networks": "Passes until broken, and what a pass takes: a dot for each network, by depth and noise",
}
PLACES = (*DEFENCES, *NETWORKS, *FIGURES, "compared")


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.survival", description=__doc__.splitlines()[0])
    parser.add_argument("defences", metavar="DEFENCES", type=Path, help="the folder of a run with defended models")
    parser.add_argument("networks", metavar="NETWORKS", type=Path, help="the folder of a run with many networks")
    parser.add_argument("--clock", type=Path, metavar="FILE", help="what training took, by studies.survival_clock")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw into this folder (needs chromium)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write everything into this page, too")
    given = parser.parse_args(words)
    try:
        defended, trained = findings(given.defences), findings(given.networks, given.clock)
        told = {place: section(defended) for place, section in DEFENCES.items()}
        told |= {place: section(trained) for place, section in NETWORKS.items()}
        compared = claims(defended, trained)
        print("\n\n".join("\n".join(lines) for lines in told.values()))
        print("\n" + "\n".join(compared))
        pictures = _drawn(defended, trained, given.figures)
        if given.page:
            blocks = {place: fenced(lines) for place, lines in told.items()}
            fill(given.page, {**blocks, **_links(pictures, given.page), "compared": compared})
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"studies.survival: {error}", file=sys.stderr)
        return 2
    return 0


def _drawn(defended: Findings, trained: Findings, folder: Path | None) -> dict[str, Path]:
    """Place -> a picture."""
    if folder is None:
        return {}
    from studies.survival_pictures import draw

    drawn = draw(defended, trained, folder)
    for path in drawn.values():
        print(f"wrote {path}")
    return drawn


def _links(pictures: Mapping[str, Path], page: Path) -> dict[str, list[str]]:
    """Links to pictures; without any, those of a page stay."""
    return {
        place: [f"![{FIGURES[place]}]({Path(os.path.relpath(path, page.parent)).as_posix()})"]
        for place, path in pictures.items()
    }


if __name__ == "__main__":
    sys.exit(main())
