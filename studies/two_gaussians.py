"""A detector that learned one kind of attack, and meets another: the example of MEAD's Sec. 3.3 (Granese et al. 2022).

    python -m studies.two_gaussians [--seed N] [--draws N] [--figure FILE] [--page FILE]

Two Gaussians in the plane, a classifier with one hidden layer, PGD that climbs the cross-entropy (ACE) or the Gini
impurity, and detectors (support vector machines with an RBF kernel) that learned from one kind of attack, from the
other, and from both. All points are crafted, judged and scored by advrisk.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from advrisk.core.errors import AdvriskError
from advrisk.core.estimate import Estimate
from advrisk.risk.detection import detection_performance, worst_case_scores
from advrisk.risk.proportion import proportion
from studies.page import fenced, fill
from studies.text import table, wrapped
from studies.two_gaussians_example import EPS, LEARNED, Example, Floats, example

MULTI = "multi-armed"
TESTED = (*EPS, MULTI)
PLACE = "two-gaussians"  # of the tables on a page


class Measured(NamedTuple):
    """What a detector does against attacks."""

    seen: Estimate  # share of attacked points that it sees at its own threshold
    auroc: Estimate
    false_alarms: Estimate  # where it sees 95 %


def measured(found: Example, kind: str, against: str, *, common: bool = False) -> Measured:
    """A detector against one kind of attack, or against all at once, where the least score of a point counts.

    With `common`, only the points count on which all attacks succeeded.
    """
    arms = [place for place, name in enumerate(EPS) if against in (name, MULTI)]
    chosen = found.success.all(0) if common else found.success.any(0)
    scores = worst_case_scores(found.attacked[kind][arms], found.success[arms] & chosen)
    performance = detection_performance(found.clean[kind], scores, rng=np.random.default_rng(0))
    return Measured(_seen(scores[~np.isnan(scores)]), performance.auroc, performance.fpr_at_tpr)


def _seen(scores: Floats) -> Estimate:
    """The share of points on the attacks' side of the machine's own border."""
    return proportion(int((scores > 0).sum()), scores.size)


def lines_of(found: Example) -> list[str]:
    """All tables of one draw."""
    accuracy = 1 - next(row["share"] for row in found.run.arms() if row["kind"] == "clean")
    counts = dict(zip(EPS, found.success.sum(1), strict=True)) | {MULTI: found.success.any(0).sum()}
    head = ["trained on", *(f"{_shown(against)} (n = {counts[against]})" for against in TESTED)]
    seen = [[*cells, str(_seen(found.clean[kind]))] for kind, cells in zip(LEARNED, _rows(found, "seen"), strict=True)]
    common = _rows(found, "auroc", common=True)
    return [
        f"{found.success.shape[1]} points for testing, {accuracy:.1%} classified correctly; attacks succeed on n.",
        "",
        "Share of attacks seen, and of clean points taken for attacks, at the detector's own threshold:",
        *table([*head, "false alarms"], seen),
        "",
        "AUROC:",
        *table(head, _rows(found, "auroc")),
        "",
        "False alarms where 95 % of attacks are seen:",
        *table(head, _rows(found, "false_alarms")),
        "",
        f"AUROC on the {found.success.all(0).sum()} points that both kinds of attack broke:",
        *table(["trained on", *map(_shown, TESTED)], common),
    ]


def _rows(found: Example, measure: str, *, common: bool = False) -> list[list[str]]:
    return [
        [_shown(kind), *(str(getattr(measured(found, kind, against, common=common), measure)) for against in TESTED)]
        for kind in LEARNED
    ]


def repeated(seeds: Sequence[int]) -> list[str]:
    """The same example drawn many times: means, and how often a detector falls."""
    values = np.array([_values(seed) for seed in seeds])  # (draw, trained on, tested on, measure)
    lines = [f"{len(seeds)} draws of points, classifier and attacks: mean and standard deviation."]
    for place, measure in enumerate(("Share seen at the own threshold", "AUROC")):
        found = values[..., place]
        rows = [[_shown(kind), *map(_spread, found[:, row].T)] for row, kind in enumerate(LEARNED)]
        lines += ["", f"{measure}:", *table(["trained on", *map(_shown, TESTED)], rows), *_falls(found)]
    return lines


def _falls(found: Floats) -> list[str]:
    """How often a detector is worse against the kind that it did not learn; (draw, trained on, tested on)."""
    n, on_ace, on_gini = len(found), found[:, 0], found[:, 1]
    worst = (found[:, 0, 2] < found[:, 0, :2].min(1)).sum()
    sentences = (
        f"Trained on ACE, it is less against Gini than against ACE in {(on_ace[:, 1] < on_ace[:, 0]).sum()} of {n} "
        f"draws, less against Gini than if trained on Gini in {(on_ace[:, 1] < on_gini[:, 1]).sum()}, and least "
        f"{MULTI} in {worst}.",
        f"Trained on Gini, it is less against ACE than against Gini in {(on_gini[:, 0] < on_gini[:, 1]).sum()}.",
    )
    return wrapped(sentences)


def _spread(values: Floats) -> str:
    return f"{values.mean():.3f} ± {values.std():.3f}"


def _values(seed: int) -> list[list[tuple[float, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        found = example(seed, Path(folder))
    each = [[measured(found, kind, against) for against in TESTED] for kind in LEARNED]
    return [[(cell.seen.value, cell.auroc.value) for cell in row] for row in each]


def _shown(kind: str) -> str:
    return {"ace": "ACE", "gini": "Gini"}.get(kind, kind)


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.two_gaussians", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the points, the classifier and the attacks")
    parser.add_argument("--draws", type=int, default=1, metavar="N", help="then do it with N seeds, and print means")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw into this PNG file (needs chromium)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables into this page, too")
    given = parser.parse_args(words)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = example(given.seed, Path(folder))
            lines = lines_of(found)
        if given.draws > 1:
            lines += ["", *repeated(range(given.seed, given.seed + given.draws))]
        print("\n".join(lines))
        if given.figure:
            from studies.plane import draw

            draw(found, given.figure)
            print(f"wrote {given.figure}")
        if given.page:
            fill(given.page, {PLACE: fenced(lines)})
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"studies.two_gaussians: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
