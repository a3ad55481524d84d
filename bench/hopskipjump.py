"""HopSkipJump beside those of ART and Foolbox: time for a query, and distances with as many queries.

A peer is run with its own settings and counted; ours then gets as many queries for each sample, and more steps than can
use them up. Ours is timed through the probe, with the clean pass and without
the judge. All have one thread, and seconds are those of the
processor, so that other work on the machine disturbs them less. No attack can cost less for a query than a raw pass in
batches of the best size: that is the floor.
"""

import statistics
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from advrisk.engine.norms import length
from advrisk.run.perturb import Attempt
from advrisk.study import Norm
from bench.cells import DIGITS, Counted, Shop, shop
from bench.nets import LINEAR
from bench.peers import HOPSKIPJUMP, Attack
from bench.timing import processor_s
from bench.zoo import data_and_model, folder

MODELS = ("plain", "noise-augmented", "pgd-trained", "trades")
FOREIGN = ("mnist_wong_0.1", "cifar10_cnn_a_adv")
ENOUGH = 200
BATCHES = (32, 64, 128, 256, 512, 1024)

Setting = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is measured. With its default settings a peer takes about 1,000 queries for 5 steps, 5,000 for 16."""

    steps: tuple[int, ...] = (5, 16)
    queries: int = 1000  # of ours, where times are measured
    samples: Mapping[str, int] = field(default_factory=lambda: {"Foolbox": 40, "ART": 10})  # ART takes one at a time
    many: int = 100
    rounds: int = 3
    models: tuple[str, ...] = (*MODELS, *FOREIGN)
    timed: tuple[str, ...] = ("plain", FOREIGN[-1])
    norms: tuple[Norm, ...] = ("l2", "linf")
    passes: int = 2 * BATCHES[-1]


TINY = Size(
    steps=(1,),
    queries=20,
    samples={"Foolbox": 2, "ART": 1},
    many=2,
    rounds=1,
    models=("plain",),
    timed=(),
    norms=("l2",),
    passes=1,
)


def main(*, tiny: bool = False) -> None:
    """Print times, then distances."""
    size = TINY if tiny else Size()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _print_times(size)
            _print_distances(size)
        except ImportError as error:
            print(f"  a peer is not installed ({error})")


def _print_times(size: Size) -> None:
    print(f"microseconds of the processor for a query in l2, about {size.queries:,} queries of each sample")
    print("  model                 samples   floor    ours  Foolbox     ART   ours / floor  Foolbox / ours  ART / ours")
    linear: Setting = {"data": DIGITS, "model": LINEAR}
    for name, setting in {"linear": linear, **_settings(size.timed)}.items():
        for n in (1, size.many):
            with shop([_arm("l2", size.queries)], samples=n, shard=n, **setting) as place:
                x, y = place.samples(place.cells[0])
                floor = _floor(place.model.answer, x, size.passes)
                place.attack(place.cells[0])  # what is done once is done
                asked = statistics.median(_cost(place) for _ in range(size.rounds))
                few = slice(size.samples["ART"])
                peers = {
                    "Foolbox": _peer_cost(place, "Foolbox", size.steps[0], x, y),
                    "ART": _peer_cost(place, "ART", size.steps[0], x[few], y[few]),
                }
            print(
                f"  {name:20} {n:8} {floor:7.1f} {asked:7.1f} {peers['Foolbox']:8.1f} {peers['ART']:7.1f} "
                f"{asked / floor:14.2f} {peers['Foolbox'] / asked:15.2f} {peers['ART'] / asked:11.2f}",
                flush=True,
            )


def _print_distances(size: Size) -> None:
    beside = ", ".join(f"{n} samples beside {peer}" for peer, n in size.samples.items())
    print(f"median distance with as many queries; {beside}")
    print("  model                norm   peer      queries    theirs      ours   ours / theirs")
    every = product(_settings(size.models).items(), size.norms, size.samples.items(), size.steps)
    for (name, setting), norm, (peer, n), steps in every:
        try:
            queries, theirs, ours = _distances(setting, norm, peer, n, steps)
        except ValueError as error:  # one sample without a start ends all of Foolbox's
            print(f"  {name:20} {norm:6} {peer:8} gave up: {error}")
            continue
        line = f"{queries:8} {theirs:9.4f} {ours:9.4f} {ours / theirs:12.2f}"
        print(f"  {name:20} {norm:6} {peer:8} {line}", flush=True)


def _settings(names: tuple[str, ...]) -> dict[str, Setting]:
    """Data and model of a study for each name; other people's classifiers only where they are there."""
    demo = {name: {"data": DIGITS, "model": {"source": "demo", "name": name}} for name in names if name in MODELS}
    foreign = {name: data_and_model(name) for name in names if name in FOREIGN and folder()}
    return demo | foreign


def _floor(answer: Callable[[Tensor], Tensor], x: Tensor, passes: int) -> float:
    """Microseconds of a raw pass for one input, in batches of the best size."""
    return min(_pass_cost(answer, x, size, passes) for size in BATCHES)


def _pass_cost(answer: Callable[[Tensor], Tensor], x: Tensor, size: int, passes: int) -> float:
    batch = x[torch.arange(size) % len(x)]
    times = max(1, passes // size)

    def ask() -> None:
        with torch.no_grad():
            for _ in range(times):
                answer(batch)

    return 1e6 * min(processor_s(ask) for _ in range(4)) / (times * size)


def _cost(place: Shop) -> float:
    """Microseconds of the attack for a query, through the probe; the judge is left out, as peers have none."""
    attempts: list[Attempt] = []
    taken = processor_s(lambda: attempts.append(place.attack(place.cells[0])[1]))
    return 1e6 * taken / int(attempts[0].counts["n_forward"].sum())


def _peer_cost(place: Shop, peer: str, steps: int, x: Tensor, y: Tensor) -> float:
    """Of the faster of two runs: the first one imports the library."""
    costs = []
    for _ in range(2):
        counted = Counted(place.module(frozen=False))
        taken = processor_s(lambda: _attacked(peer, counted, "l2", steps, x, y))  # noqa: B023
        costs.append(1e6 * taken / counted.n_forward)
    return min(costs)


def _distances(setting: Setting, norm: Norm, peer: str, n: int, steps: int) -> tuple[int, float, float]:
    """The peer's queries for a sample, its median distance, and ours with as many."""
    with shop([_arm(norm, 1)], samples=n, shard=n, **setting) as place:
        x, y = place.samples(place.cells[0])
        counted = Counted(place.module(frozen=False))
        points, _ = _attacked(peer, counted, norm, steps, x, y)
        with torch.no_grad():
            broken = place.module(frozen=True)(points).argmax(1) != y
    queries = counted.n_forward // n
    with shop([_arm(norm, queries)], samples=n, shard=n, **setting) as place:
        rows = place.run_cell(place.cells[0]).tables["outcomes"].to_pylist()
    ours = torch.tensor([row[f"d_{norm}"] if row["outcome"] == "success" else torch.inf for row in rows])
    theirs = torch.where(broken, length(points - x, norm), torch.inf)
    return queries, float(theirs.median()), float(ours.median())


def _attacked(peer: str, module: nn.Module, norm: Norm, steps: int, x: Tensor, y: Tensor) -> tuple[Tensor, Any]:
    torch.manual_seed(0)
    np.random.seed(0)
    attack: Attack = HOPSKIPJUMP[peer](module, norm=norm, steps=steps)
    return attack(x, y)


def _arm(norm: str, queries: int) -> dict[str, Any]:
    return {"attack": "hopskipjump", "norm": norm, "max_queries": queries, "steps": ENOUGH}


if __name__ == "__main__":
    main()
