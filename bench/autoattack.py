"""AutoAttack beside its authors' own: verdicts and time.

With $ADVRISK_ZOO and $ADVRISK_DATA, on classifiers that others trained; else on the demo's.
Ours runs as a cell: attacked, judged, made into rows. The other is `pyautoattack`, which packages the authors' code.
Both have one thread and all samples in one batch.
"""

from typing import Any

import torch
from torch import Tensor

from advrisk.plan import Cell
from advrisk.run.rows import CellResult
from bench import zoo
from bench.cells import Shop, shop
from bench.peers import pyautoattack_standard
from bench.timing import processor_s

DEMO = {"pgd-trained": {"linf": 0.2, "l2": 1.6}, "trades": {"l1": 8.0}, "plain": {"linf": 0.06}}  # minutes each
FOREIGN = {
    "cifar10_cnn_a_adv": {"linf": 2 / 255, "l2": 0.25, "l1": 4.0},
    "mnist_wong_0.1": {"linf": 0.12},
    "mnist_colt_0.1": {"linf": 0.2},
    "mnist_advertorch_lenet5_std": {"linf": 0.1},
}


def main(*, tiny: bool = False) -> None:
    """Print how often verdicts agree and how the times compare."""
    samples = 1 if tiny else 100
    models = {"plain": {"linf": 0.5}} if tiny else FOREIGN if zoo.folder() else DEMO
    print(f"AutoAttack, standard version; {samples} samples. Same verdict: of ours and theirs; and of theirs with two")
    print("seeds, beyond which agreement means nothing. Time: the shorter of their two runs / ours.")
    print("                                        left unbroken    same verdict     broken only by     time")
    print("  model                       eps       ours  theirs     ours  reseeded   ours  theirs       theirs / ours")
    for model, sizes in models.items():
        for norm, eps in sizes.items():
            try:
                _compare(model, norm, eps, samples)
            except ImportError as error:
                print(f"  {model:27} {norm:4} not installed ({error})")


def _compare(model: str, norm: str, eps: float, samples: int) -> None:
    arm = _arm("autoattack", norm, eps)
    with shop([arm], samples=samples, shard=samples, **zoo.data_and_model(model)) as place:
        (cell,) = place.cells
        (theirs, wall_first), (reseeded, wall_second) = (_theirs(place, cell, norm, eps, seed) for seed in (0, 1))
        results: list[CellResult] = []
        wall = processor_s(lambda: results.append(place.run_cell(cell)))
    outcomes = results[0].tables["outcomes"]["outcome"].to_pylist()
    ours = torch.tensor([outcome == "success" for outcome in outcomes])
    left, left_theirs, ours_only, theirs_only = (
        int(column.sum()) for column in (~ours, ~theirs, ours & ~theirs, theirs & ~ours)
    )
    same, same_reseeded = (float((column == theirs).double().mean()) for column in (ours, reseeded))
    print(
        f"  {model:27} {norm:4} {eps:.4g}".ljust(41) + f"{left:4} {left_theirs:7} {same:9.0%} {same_reseeded:9.0%} "
        f"{ours_only:6} {theirs_only:7} {min(wall_first, wall_second) / wall:14.2f}",
        flush=True,
    )


def _theirs(place: Shop, cell: Cell, norm: str, eps: float, seed: int) -> tuple[Tensor, float]:
    """Which samples the authors' code breaks, according to a pass of our own, and in how many seconds."""
    x, y = place.samples(cell)
    attack = pyautoattack_standard(place.module(frozen=False), norm=norm, eps=eps, seed=seed)
    answers: list[Tensor] = []
    wall = processor_s(lambda: answers.append(attack(x, y)[0]))
    with torch.no_grad():
        return place.module(frozen=True)(answers[0]).argmax(1) != y, wall


def _arm(attack: str, norm: str, eps: float) -> dict[str, Any]:
    return {"attack": attack, "norm": norm, "eps": eps}


if __name__ == "__main__":
    main()
