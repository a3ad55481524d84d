"""A detector that learned one kind of attack, and meets another: the example of MEAD's Sec. 3.3 (Granese et al. 2022).

    python -m studies.two_gaussians [--seed N] [--draws N] [--figure FILE] [--page FILE]

Two Gaussians in the plane, a classifier with one hidden layer, PGD that climbs the cross-entropy (ACE) or the Gini
impurity, and detectors (support vector machines with an RBF kernel) that learned from one kind of attack, from the
other, and from both. All points are crafted, judged and scored by advrisk.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from advrisk import Run, Study
from advrisk.core.errors import AdvriskError
from advrisk.core.estimate import Estimate
from advrisk.ledger.exporting import export_inputs
from advrisk.risk.detection import detection_performance, worst_case_scores
from advrisk.risk.proportion import proportion
from studies.page import fenced, fill
from studies.text import table, wrapped

Points = NDArray[np.float32]
Floats = NDArray[np.float64]

MEANS = ((-1.0, -1.0), (1.0, 1.0))
PER_CLASS = 300
TRAIN = 0.7
BOUNDS = (-12.0, 12.0)  # far enough out that no attack meets them
HIDDEN = 20
EPOCHS = 400
EPS = {"ace": 1.2, "gini": 5.0}
MULTI = "multi-armed"
LEARNED = (*EPS, "both")  # what a detector was trained on
TESTED = (*EPS, MULTI)
PLACE = "two-gaussians"  # of the tables on a page


class Drawn(NamedTuple):
    """Points, their classes, and which of them are for training."""

    x: Points
    y: NDArray[np.int64]
    train: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Detector:
    """A support vector machine that tells attacks from clean points; any object with `score` will do."""

    machine: Any

    def score(self, x: Points) -> Floats:
        scores: Floats = self.machine.decision_function(x)
        return scores


class Measured(NamedTuple):
    """What a detector does against attacks."""

    seen: Estimate  # share of attacked points that it sees at its own threshold
    auroc: Estimate
    false_alarms: Estimate  # where it sees 95 %


@dataclass(frozen=True, eq=False)
class Example:
    """One draw of the example: what was attacked, what came of it, and what each detector says of it."""

    points: Drawn
    detectors: Mapping[str, Detector]
    run: Run
    adversarial: Mapping[str, Points]  # successes of each kind among the points for testing
    clean: Mapping[str, Floats]  # of each detector, the scores of the clean points
    attacked: Mapping[str, Floats]  # of each detector, the scores of attacked points: (kind, point)
    success: NDArray[np.bool_]  # (kind, point)


def drawn(seed: int) -> Drawn:
    """300 points around each mean, with identity covariance; 70 % of each class are for training."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(mean, 1, (PER_CLASS, 2)) for mean in MEANS]).astype(np.float32)
    first = np.arange(PER_CLASS) < round(TRAIN * PER_CLASS)  # they were drawn in no order
    return Drawn(x, np.repeat([0, 1], PER_CLASS), np.tile(first, 2))


def classifier(points: Drawn, seed: int) -> nn.Module:
    """One hidden layer, trained on all training points at once."""
    x, y = torch.from_numpy(points.x[points.train]), torch.from_numpy(points.y[points.train])
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2))
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        adam.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()  # type: ignore[no-untyped-call]
        adam.step()
    return net


def example(seed: int, folder: Path) -> Example:
    """Draw, train, attack the training points, fit the detectors to these, attack the points for testing, score."""
    points = drawn(seed)
    net = classifier(points, seed)
    crafted = attacked(points.x[points.train], points.y[points.train], net, seed, folder / "train", {})
    kinds = successes(crafted)
    examples = {**kinds, "both": np.concatenate(list(kinds.values()))}
    detectors = {kind: learned(points.x[points.train], x) for kind, x in examples.items()}
    run = attacked(points.x[~points.train], points.y[~points.train], net, seed, folder / "test", detectors)
    success, scores = outcomes(run)
    return Example(
        points=points,
        detectors=detectors,
        run=run,
        adversarial=successes(run),
        clean={kind: both[0] for kind, both in scores.items()},
        attacked={kind: both[1] for kind, both in scores.items()},
        success=success,
    )


def attacked(
    x: Points, y: NDArray[np.int64], net: nn.Module, seed: int, folder: Path, detectors: Mapping[str, Detector]
) -> Run:
    """A run over these points: PGD in linf with each objective, to its last step."""
    folder.mkdir(parents=True)
    np.savez(folder / "points.npz", x=x, y=y)
    data = {"source": "npz", "path": str(folder / "points.npz"), "bounds": list(BOUNDS)}
    study = {
        "name": "two-gaussians",
        "seed": seed,
        "device": "cpu",
        "data": data | {"evaluate": "all", "order": "file"},
        "models": {"net": {"source": "object"}},
        "arms": [
            {"attack": "pgd", "norm": "linf", "eps": eps, "objective": objective, "keep": "last"}
            for objective, eps in EPS.items()
        ],
        "shard": len(x),
    }
    return Study.from_dict(study).run(folder / "run", modules={"net": net}, detectors=detectors, workers=1)


def successes(run: Run) -> dict[str, Points]:
    """The points with which each kind of attack succeeded."""
    found = {}
    for kind in EPS:
        target = run.folder / f"{kind}.npz"
        export_inputs(run.folder, run.ledger, target, arm=f"pgd-*-{kind}*")
        with np.load(target) as file:
            found[kind] = file["x_adv"]
    return found


def learned(clean: Points, adversarial: Points) -> Detector:
    """An RBF machine with scikit-learn's own settings; both sides count alike, however many there are."""
    from sklearn.svm import SVC

    sides = np.repeat([0, 1], [len(clean), len(adversarial)])
    return Detector(SVC(class_weight="balanced").fit(np.concatenate([clean, adversarial]), sides))


_SCORED = """
    SELECT o.sample, o.objective, o.outcome = 'success' AS success, s.score, split_part(s.detector, '@', 1) AS detector
    FROM outcomes o LEFT JOIN scores s ON s.cell = o.cell AND s.sample = o.sample
"""


def outcomes(run: Run) -> tuple[NDArray[np.bool_], dict[str, tuple[Floats, Floats]]]:
    """Which attack succeeded on which point; and of each detector, scores of the clean and of the attacked points."""
    names = run.query("SELECT sample FROM samples ORDER BY sample")["sample"].to_pylist()
    column = {name: place for place, name in enumerate(names)}
    row = {kind: place for place, kind in enumerate(EPS)}
    success = np.zeros((len(EPS), len(names)), dtype=np.bool_)
    scores = {kind: (np.full(len(names), np.nan), np.full(success.shape, np.nan)) for kind in LEARNED}
    for found in run.query(_SCORED).to_pylist():
        place = column[found["sample"]]
        if found["objective"] is None:
            scores[found["detector"]][0][place] = found["score"]
        elif found["success"]:
            success[row[found["objective"]], place] = True
            scores[found["detector"]][1][row[found["objective"]], place] = found["score"]
    return success, scores


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
