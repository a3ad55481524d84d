"""How near to the smallest distance does the judge's walk back come, and at what price? `python -m bench walk_back`

PGD at one eps against classifiers of $ADVRISK_ZOO (without it, the demo's). Each success is measured where PGD kept it,
on the straight line to the clean input, and after so many turns. All are divided by the nearest success that anything
found: the walk, or `minimum-norm` on the same samples.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from advrisk.parts import REGISTRIES
from advrisk.plan import Cell
from advrisk.run.perturb import AttackedShard, Attempt, load_target, perturb
from advrisk.run.walk_back import walk_back
from bench.cells import Shop, shop
from bench.zoo import data_and_model, folder

TURNS = (0, 1, 2, 3)
_ZOO = {
    "cifar10_resnet20_std": {"linf": "8/255", "l2": 1.0},
    "cifar10_cnn_a_adv": {"linf": "8/255", "l2": 1.0},
    "mnist_wong_0.1": {"linf": 0.3, "l2": 3.0},
    "mnist_cnn_a_adv": {"linf": 0.3, "l2": 3.0},
}
_DEMO = {"plain": {"linf": 0.3, "l2": 3.0}, "trades": {"linf": 0.3, "l2": 3.0}}


def main(*, tiny: bool = False) -> None:
    """Print a line for each classifier and norm."""
    cases: Mapping[str, Mapping[str, Any]] = _ZOO if folder() and not tiny else _DEMO
    heads = " | ".join(f"{turns} turns" for turns in TURNS)
    print(f"median distance / smallest known (90 % quantile, passes per success)\nmodel, norm | kept | {heads}")
    for model, sizes in cases.items():
        for norm, eps in sizes.items():
            print(f"{model}, {norm} | {_measured(model, norm, eps, n=8 if tiny else 60)}", flush=True)


def _measured(model: str, norm: Any, eps: Any, *, n: int) -> str:
    arms = [{"attack": "pgd", "norm": norm, "eps": eps}, {"attack": "minimum-norm", "norm": norm}]
    with shop(arms, samples=n, shard=n, **data_and_model(model)) as own:
        found = {cell.arm.family: _attacked(own, cell) for cell in own.cells}
        target, attempt = found["pgd"]
        kept = _distances(target, attempt, norm)
        rows = torch.isfinite(kept).nonzero().squeeze(1)
        answer = target.model.ask_owner(attempt.kept)
        walks = [walk_back(target, attempt.kept, answer, rows, norm, "gradients", turns=turns) for turns in TURNS]
        nearest = torch.stack([_distances(*found["minimum-norm"], norm)[rows], *(w.distances[norm] for w in walks)])
        least = nearest.amin(0)
    ratios = [_ratio(walk.distances[norm] / least, walk.n_passes) for walk in walks]
    return " | ".join([_ratio(kept[rows] / least, 0), *ratios])


def _attacked(own: Shop, cell: Cell) -> tuple[AttackedShard, Attempt]:
    seed = own.bench.study.seed
    target = load_target(own.bench.material, cell, own.bench.study.success, seed=seed)
    return target, perturb(target, cell, REGISTRIES, seed=seed, max_cell_s=None)


def _distances(target: AttackedShard, attempt: Attempt, norm: Any) -> Tensor:
    """Of the points that an attack claims, inf elsewhere."""
    distance = target.space.distance(attempt.kept.double(), target.x0.double(), norm)
    return distance if attempt.claimed is None else distance.masked_fill(~attempt.claimed, torch.inf)


def _ratio(ratio: Tensor, passes: int) -> str:
    if not len(ratio):
        return "–"
    return f"{ratio.median():.2f} ({torch.quantile(ratio, 0.9):.2f}, {passes})"


if __name__ == "__main__":
    main()
