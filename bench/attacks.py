"""Our attacks beside those of other libraries: time, passes, and what a forward pass of our own says of their points.

Ours run as cells: attacked, judged, made into rows. The others are called as users call them, with parameters that are
not frozen. Every library has one thread, and they take turns.
"""

import statistics
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from advrisk.plan import Cell
from bench.cells import Counted, Shop, shop
from bench.peers import CARLINI_WAGNER, DEEPFOOL, PGD, Attack, Maker
from bench.timing import in_turn, median_ratio

SAMPLES, FEW = 128, 16  # few: for attacks that take a tenth of a second per sample and more
SLOW = ("ART", "torchattacks")
EPS, STEPS, STEP = 0.2, 40, 0.02
DEEPFOOL_STEPS, CANDIDATES = 50, 10
SEARCHES, CW_STEPS, CW_STEP, CONST = 5, 50, 0.05, 0.01
ROUNDING = 1e-5  # logits of two modules that differ only in the order of their sums


@dataclass(frozen=True)
class Contender:
    """An attack of some library with the samples it is given, and what came of a first run, which is not timed."""

    run: Callable[[], object]
    n: int
    n_forward: float  # per sample
    n_backward: float
    lead: Tensor  # of the best other class over the one to be left, by the owner's module; above 0: broken
    claimed: Tensor | None
    black: Tensor
    distance: Tensor


def main() -> None:
    """Print PGD, DeepFool and Carlini & Wagner, ours first."""
    arms = [
        {"attack": "pgd", "norm": "linf", "eps": EPS, "steps": STEPS, "step_size": STEP, "keep": "last"},
        {"attack": "deepfool", "norm": "l2", "steps": DEEPFOOL_STEPS, "candidates": CANDIDATES},
        {
            "attack": "carlini-wagner",
            "norm": "l2",
            "searches": SEARCHES,
            "steps": CW_STEPS,
            "step_size": CW_STEP,
            "initial_const": CONST,
        },
    ]
    with shop(arms, samples=SAMPLES, shard=SAMPLES) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgd, deepfool, carlini_wagner = place.cells
        print(f"PGD linf, {STEPS} steps of {STEP}, eps {EPS}, random start; {SAMPLES} samples")
        settings: dict[str, Any] = {"eps": EPS, "step": STEP, "steps": STEPS}
        _compare(place, pgd, PGD, settings, rounds=7)
        print(
            f"\nDeepFool l2, at most {DEEPFOOL_STEPS} steps, overshoot 0.02, all 9 other classes (ART: {CANDIDATES});"
        )
        print(f"{SAMPLES} samples, {FEW} for ART and torchattacks")
        settings = {"steps": DEEPFOOL_STEPS, "candidates": CANDIDATES}
        _compare(place, deepfool, DEEPFOOL, settings, rounds=5, slow=SLOW)
        print(f"\nCarlini & Wagner l2, {SEARCHES} searches of at most {CW_STEPS} steps of {CW_STEP} from c = {CONST},")
        print(f"confidence 0; {SAMPLES} samples, {FEW} for ART")
        settings = {"searches": SEARCHES, "steps": CW_STEPS, "step": CW_STEP, "const": CONST}
        _compare(place, carlini_wagner, CARLINI_WAGNER, settings, rounds=5, slow=SLOW)
    print("\nPasses: rows through the module, counted alike for all; ours include the clean pass and the judge's.")
    print("False: called a success, but the owner's module still gives the old class, or the image is black;")
    print(
        f"at the edge: of these, the ones whose class is only just the old one, by less than {ROUNDING} in the logits."
    )


def _compare(
    place: Shop,
    cell: Cell,
    makers: Mapping[str, Maker],
    settings: Mapping[str, Any],
    *,
    rounds: int,
    slow: tuple[str, ...] = (),
) -> None:
    """One table: quick contenders take turns with ours, slow ones have one round with it."""
    contenders = {"advrisk": _ours(place, cell)}
    x, y = place.samples(cell)
    for name, make in makers.items():
        n = FEW if name in slow else len(x)
        try:
            contenders[name] = _theirs(make, settings, place.module(frozen=False), x[:n], y[:n])
        except ImportError as error:
            print(f"  {name:13} not installed ({error})")
    quick = [name for name in contenders if name not in slow]
    taken = in_turn({name: contenders[name].run for name in quick}, rounds=rounds)
    for name in contenders.keys() - set(quick):
        pair = in_turn({name: contenders[name].run, "advrisk": contenders["advrisk"].run}, rounds=1)
        taken[name] = [pair[name][0] * taken["advrisk"][0] / pair["advrisk"][0]] * rounds
    _print_table(contenders, taken)


def _print_table(contenders: Mapping[str, Contender], taken: Mapping[str, list[float]]) -> None:
    print("                  forward / backward         ms      time        left  false           median")
    print("                  passes per sample      a sample  / ours    unbroken  (at the edge)   l2 distance")
    ours = [wall / contenders["advrisk"].n for wall in taken["advrisk"]]
    for name, one in contenders.items():
        each = [wall / one.n for wall in taken[name]]
        broken = (one.lead > 0) & ~one.black
        print(
            f"  {name:13} {one.n_forward:9.1f} / {one.n_backward:7.1f} {1e3 * statistics.median(each):13.2f} "
            f"{median_ratio(each, ours):7.2f} {100 * float((~broken).float().mean()):9.0f} %  "
            f"{_false_successes(one):15} {float(one.distance[broken].median()) if broken.any() else float('nan'):.3f}",
            flush=True,
        )


def _false_successes(one: Contender) -> str:
    if one.claimed is None:
        return "does not say"
    false = one.claimed & ((one.lead <= 0) | one.black)
    edge = false & ~one.black & (one.lead > -ROUNDING)
    return f"{int(false.sum())} ({int(edge.sum())}) of {one.n}"


def _ours(place: Shop, cell: Cell) -> Contender:
    x, y = place.samples(cell)
    x_adv, claimed = place.kept(cell)
    work = partial(place.carry_out, cell)
    return _checked(work, place.module(frozen=True), x, y, x_adv, claimed, place.counted(cell))


def _theirs(make: Maker, settings: Mapping[str, Any], module: nn.Module, x: Tensor, y: Tensor) -> Contender:
    counted = Counted(module)
    x_adv, claimed = make(counted, **settings)(x, y)
    attack: Attack = make(module, **settings)
    passes = counted.n_forward, counted.n_backward
    return _checked(partial(attack, x, y), module, x, y, x_adv, claimed, passes)


def _checked(
    work: Callable[[], object],
    owners: nn.Module,
    x: Tensor,
    y: Tensor,
    x_adv: Tensor,
    claimed: Tensor | None,
    passes: tuple[int, int],
) -> Contender:
    """What the owner's module says of the points."""
    with torch.no_grad():
        scores = owners(x_adv)
    own = y[:, None]
    delta = (x_adv - x).flatten(1)
    return Contender(
        run=work,
        n=len(x),
        n_forward=passes[0] / len(x),
        n_backward=passes[1] / len(x),
        lead=scores.scatter(1, own, -torch.inf).amax(1) - scores.gather(1, own).squeeze(1),
        claimed=claimed,
        black=(x_adv == 0).flatten(1).all(1),
        distance=delta.norm(dim=1),
    )


if __name__ == "__main__":
    main()
