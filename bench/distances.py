"""Minimal distances and the passes they take: ours, Foolbox's, and FMN.

Foolbox's are the damage paper's 24 configurations in linf, and its attacks for minimal distances in l2 and l1.

With $ADVRISK_ZOO and $ADVRISK_DATA, on classifiers that others trained and on which nothing was tuned; else on the
demo's. A success is a change of prediction.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from advrisk.engine.norms import length
from advrisk.plan import Cell
from advrisk.study import Norm
from bench import zoo
from bench.cells import Counted, Shop, shop
from bench.peers import SIZES, adv_lib_fmn, foolbox_at_sizes, foolbox_minimum_norm

NO_WORSE = 1.0001  # a distance that is larger by less counts as equal: they are float32
HELD_OUT = (
    "cifar10_cnn_a_mix",
    "mnist_cnn_a_adv",
    "mnist_wong_small_0.3",
    "fmnist_wong_0.1",
    "mnist_advertorch_lenet5_std",
)
DEMO = ("plain", "noise-augmented", "pgd-trained", "trades")
FOOLBOX: dict[Norm, str] = {
    "linf": "PGD, PGD-Adam and DeepFool, each at 8 sizes",
    "l2": "DeepFool, DDN, FMN and C&W",
    "l1": "EAD and FMN",
}


@dataclass(frozen=True)
class Found:
    """The distance at which each sample fell, infinite where it did not, and the passes that this took."""

    distance: Tensor
    n_passes: float  # forward and backward, per sample


def main(*, tiny: bool = False) -> None:
    """Print a line for each norm and model."""
    samples, steps, sizes = (2, 3, SIZES[3:4]) if tiny else (100, 100, SIZES)
    names = DEMO[:1] if tiny else HELD_OUT if zoo.folder() else DEMO
    print(
        f"{samples} samples of each model. No worse: the share of samples at a distance that is not larger than that of"
    )
    print(
        "Foolbox's attacks, the nearest of which counts. Mean distance: over the samples that both FMN and ours broke."
    )
    for norm, attacks in FOOLBOX.items():
        print(f"In {norm} (Foolbox: {attacks})")
        print("                               passes per sample     no worse       mean distance")
        print("  model                        Foolbox FMN   ours    FMN    ours    FMN      ours")
        for name in names:
            _print_model(name, norm, samples=samples, steps=steps, sizes=sizes)


def _print_model(name: str, norm: Norm, *, samples: int, steps: int, sizes: Sequence[float]) -> None:
    arm = {"attack": "minimum-norm", "norm": norm}
    with shop([arm], samples=samples, shard=samples, **zoo.data_and_model(name)) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = found_by(place, place.cells[0], norm)
        x, y = place.samples(place.cells[0])
        module = place.module(frozen=False)
        at_sizes, nearest = (
            partial(foolbox_at_sizes, sizes=sizes),
            partial(foolbox_minimum_norm, norm=norm, steps=steps),
        )
        peer = at_sizes if norm == "linf" else nearest
        other = partial(adv_lib_fmn, norm=norm, steps=steps)
        try:
            foolbox, fmn = (_theirs(attack, module, x, y, norm) for attack in (peer, other))
        except ImportError as error:
            print(f"  {name:28} not installed ({error})")
            return
    both = fmn.distance.isfinite() & ours.distance.isfinite()
    share = [float((one.distance <= NO_WORSE * foolbox.distance).double().mean()) for one in (fmn, ours)]
    mean = [float(one.distance[both].mean()) for one in (fmn, ours)]
    print(
        f"  {name:28} {foolbox.n_passes:5.0f} {fmn.n_passes:5.0f} {ours.n_passes:6.1f} {share[0]:6.0%} {share[1]:7.0%} "
        f"{mean[0]:9.4f} {mean[1]:8.4f}",
        flush=True,
    )


def found_by(place: Shop, cell: Cell, norm: Norm) -> Found:
    """As the judge has it; the judge's own passes are not counted."""
    outcomes = place.run_cell(cell).tables["outcomes"].to_pylist()
    hit = [row[f"d_{norm}"] if row["outcome"] == "success" else float("inf") for row in outcomes]
    return Found(torch.tensor(hit), sum(row["n_forward"] + row["n_backward"] for row in outcomes) / len(outcomes))


def _theirs(attack: Callable[..., list[Tensor]], module: nn.Module, x: Tensor, y: Tensor, norm: Norm) -> Found:
    """The nearest of the points that a pass of our own finds broken."""
    counted = Counted(module)
    nearest = torch.full((len(x),), torch.inf)
    for x_adv in attack(counted, x, y):
        with torch.no_grad():
            broken = module(x_adv).argmax(1) != y
        nearest = torch.where(broken, torch.minimum(nearest, length(x_adv - x, norm)), nearest)
    return Found(nearest, (counted.n_forward + counted.n_backward) / len(x))


if __name__ == "__main__":
    main()
