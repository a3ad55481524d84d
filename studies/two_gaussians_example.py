"""Two Gaussians in the plane, a classifier, attacks on it, detectors of these: what `studies.two_gaussians` tells of.

All points are crafted, judged and scored by advrisk.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from advrisk import Run, Study
from advrisk.ledger.exchange.exporting import export_inputs

Points = NDArray[np.float32]
Floats = NDArray[np.float64]

MEANS = ((-1.0, -1.0), (1.0, 1.0))
PER_CLASS = 300
TRAIN = 0.7
BOUNDS = (-12.0, 12.0)  # far enough out that no attack meets them
HIDDEN = 20
EPOCHS = 400
EPS = {"ace": 1.2, "gini": 5.0}
LEARNED = (*EPS, "both")  # what a detector was trained on


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
