"""Detectors against an attacker who knows them, on the demo's models: `python -m studies.adaptive RUN`.

Runs studies/adaptive-demo.yaml (or resumes it) in that folder, and prints how well each detector tells the successes of
PGD, and those of the adaptive attack against it, from the clean inputs.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advrisk import Run, Study

STUDY = Path(__file__).with_name("adaptive-demo.yaml")

_SCORES = """
    SELECT o.model, o.kind, o.family, coalesce(o.eps, 0) AS eps, s.detector, list(s.score) AS scores
    FROM scores s JOIN outcomes o ON o.cell = s.cell AND o.sample = s.sample
    JOIN arms a ON a.model = o.model AND a.arm = o.arm
    WHERE o.family <> 'adaptive' OR json_extract_string(a.params, '$.detector') = s.detector
    GROUP BY ALL
"""


def main(folder: str) -> None:
    """Run the study and print the table."""
    run = Study.load(STUDY).run(folder)
    found = known_scores(run)
    models = sorted({key[0] for key in found}, reverse=True)
    sizes = sorted({key[2] for key in found if key[1] == "pgd"})
    names = sorted({key[3] for key in found})
    print("| model | eps | detector | AUROC against PGD | against adaptive | median score, PGD | adaptive | broken |")
    print("|---|---|---|---|---|---|---|---|")
    for model in models:
        for eps in sizes:
            for name in names:
                clean = found[model, "clean", 0.0, name]
                blind, knowing = (found[model, family, eps, name] for family in ("pgd", "adaptive"))
                cells = [model, f"{eps:g}", name.partition("@")[0]]
                cells += [f"{auroc(clean, blind):.3f}", f"{auroc(clean, knowing):.3f}"]
                cells += [f"{np.median(blind):.3g}", f"{np.median(knowing):.3g}", f"{len(blind)} and {len(knowing)}"]
                print(f"| {' | '.join(cells)} |")


def known_scores(run: Run) -> dict[tuple[str, str, float, str], NDArray[np.float64]]:
    """(model, family, eps, detector) -> scores; of adaptive arms, by the detector that they know."""
    rows = run.query(_SCORES).to_pylist()
    return {(row["model"], row["family"], row["eps"], row["detector"]): np.array(row["scores"]) for row in rows}


def auroc(clean: NDArray[np.float64], attacked: NDArray[np.float64]) -> float:
    """How often an attacked input is more suspicious than a clean one; a tie counts half."""
    above = attacked[:, None] > clean
    ties = attacked[:, None] == clean
    return float(np.mean(above + 0.5 * ties))


if __name__ == "__main__":
    main(sys.argv[1])
