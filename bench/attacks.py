"""Our attacks beside those of other libraries: time, passes, and what a forward pass of our own says of their points.

Ours are measured through the probe: the clean pass and the attack. A line below says what a whole cell takes: judged
and made into rows, too. The others are called as users call them, with parameters that are not frozen. Every library
has one thread; they take turns, and seconds are those that a core is busy.
"""

import statistics
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from advrisk.plan import Cell
from bench.cells import Counted, Shop, shop
from bench.peers import CARLINI_WAGNER, DEEPFOOL, PGD, Attack, Maker
from bench.timing import in_turn, processor_s, ratios, spread

SLOW = ("ART", "torchattacks")
EPS, STEP = 0.2, 0.02
CANDIDATES = 10
CW_STEP, CONST = 0.05, 0.01
ROUNDING = 1e-5  # logits of two modules that differ only in the order of their sums
OURS, CELL = "advrisk", "  whole cell"


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    samples: int = 128
    few: int = 16  # for attacks that take a tenth of a second per sample and more
    steps: int = 40
    deepfool_steps: int = 50
    searches: int = 5
    cw_steps: int = 50
    pgd_rounds: int = 15
    rounds: int = 5


TINY = Size(samples=4, few=2, steps=2, deepfool_steps=2, searches=1, cw_steps=2, pgd_rounds=1, rounds=1)


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


def main(*, tiny: bool = False) -> None:
    """Print PGD, DeepFool and Carlini & Wagner, ours first."""
    size = TINY if tiny else Size()
    with shop(_arms(size), samples=size.samples, shard=size.samples) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgd, deepfool, carlini_wagner = place.cells
        print(f"PGD linf, {size.steps} steps of {STEP}, eps {EPS}, random start; {size.samples} samples")
        settings: dict[str, Any] = {"eps": EPS, "step": STEP, "steps": size.steps}
        _compare(place, pgd, PGD, settings, size, rounds=size.pgd_rounds)
        print(f"\nDeepFool l2, at most {size.deepfool_steps} steps, overshoot 0.02, all 9 other classes", end=" ")
        print(f"(ART: {CANDIDATES});\n{size.samples} samples, {size.few} for ART and torchattacks")
        settings = {"steps": size.deepfool_steps, "candidates": CANDIDATES}
        _compare(place, deepfool, DEEPFOOL, settings, size, slow=SLOW)
        print(f"\nCarlini & Wagner l2, {size.searches} searches of at most {size.cw_steps} steps of {CW_STEP}", end=" ")
        print(f"from c = {CONST},\nconfidence 0; {size.samples} samples, {size.few} for ART")
        settings = {"searches": size.searches, "steps": size.cw_steps, "step": CW_STEP, "const": CONST}
        _compare(place, carlini_wagner, CARLINI_WAGNER, settings, size, slow=SLOW)
    print("\nTime / ours: the median of the rounds, with the smallest and the largest; slow attacks have one round.")
    print(
        "Passes: rows through the module, counted alike for all; ours include the clean pass, a whole cell the judge's."
    )
    print("False: called a success, but the owner's module still gives the old class, or the image is black;")
    print(
        f"at the edge: of these, the ones whose class is only just the old one, by less than {ROUNDING} in the logits."
    )


def _arms(size: Size) -> list[dict[str, Any]]:
    return [
        {"attack": "pgd", "norm": "linf", "eps": EPS, "steps": size.steps, "step_size": STEP, "keep": "last"},
        {"attack": "deepfool", "norm": "l2", "steps": size.deepfool_steps, "candidates": CANDIDATES},
        {
            "attack": "carlini-wagner",
            "norm": "l2",
            "searches": size.searches,
            "steps": size.cw_steps,
            "step_size": CW_STEP,
            "initial_const": CONST,
        },
    ]


def _compare(
    place: Shop,
    cell: Cell,
    makers: Mapping[str, Maker],
    settings: Mapping[str, Any],
    size: Size,
    *,
    rounds: int | None = None,
    slow: tuple[str, ...] = (),
) -> None:
    """One table: quick contenders take turns with ours, slow ones have one round with it."""
    ours = _ours(place, cell)
    n_judged = int(place.run_cell(cell).tables["outcomes"]["n_judge"].to_numpy().sum()) / ours.n
    whole = replace(ours, run=partial(place.run_cell_anew, cell), n_forward=ours.n_forward + n_judged)
    contenders = {OURS: ours, CELL: whole}
    x, y = place.samples(cell)
    for name, make in makers.items():
        n = size.few if name in slow else len(x)
        try:
            contenders[name] = _theirs(make, settings, place.module(frozen=False), x[:n], y[:n])
        except ImportError as error:
            print(f"  {name:13} not installed ({error})")
    quick = [name for name in contenders if name not in slow]
    taken = in_turn({name: contenders[name].run for name in quick}, rounds=rounds or size.rounds, clock=processor_s)
    for name in (name for name in contenders if name in slow):
        pair = in_turn({name: contenders[name].run, OURS: contenders[OURS].run}, rounds=1, clock=processor_s)
        taken[name] = [pair[name][0] * statistics.median(taken[OURS]) / pair[OURS][0]]
    _print_table(contenders, taken)


def _print_table(contenders: Mapping[str, Contender], taken: Mapping[str, list[float]]) -> None:
    print("                  forward / backward        ms                time        left  false           median")
    print("                  passes per sample   a sample              / ours    unbroken  (at the edge)   l2 distance")
    ours = [taken_s / contenders[OURS].n for taken_s in taken[OURS]]
    for name, one in contenders.items():
        each = [taken_s / one.n for taken_s in taken[name]]
        beside = ours if len(each) == len(ours) else [statistics.median(ours)] * len(each)
        broken = (one.lead > 0) & ~one.black
        print(
            f"  {name:13} {one.n_forward:9.1f} / {one.n_backward:7.1f} {1e3 * statistics.median(each):10.2f} "
            f"{spread(ratios(each, beside)):>19} {100 * float((~broken).float().mean()):9.0f} %  "
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
    target, attempt = place.attack(cell)
    x, y = target.x0, target.goal.reference
    passes, work = place.counted(lambda shop: shop.attack(cell)), partial(place.attack, cell)
    return _checked(work, place.module(frozen=True), x, y, attempt.kept, attempt.claimed, passes)


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
