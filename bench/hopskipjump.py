"""HopSkipJump beside those of ART and Foolbox: time for a query, and distances with as many queries.

A peer is run with its own settings and counted; ours then gets as many queries for each sample, and more steps than can
use them up. Ours runs as a cell: attacked, judged, made into rows. All have one thread.
"""

import statistics
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from advrisk.engine.norms import length
from advrisk.run.rows import CellResult
from advrisk.study import Norm
from bench.cells import Counted, shop
from bench.peers import HOPSKIPJUMP, Attack, Maker
from bench.timing import seconds

NORMS: tuple[Norm, ...] = ("l2", "linf")
MODELS = ("plain", "noise-augmented", "pgd-trained", "trades")
SAMPLES, FEW = 50, 10  # few: for ART, which takes one sample at a time; distances are those of the same samples
STEPS = 10
ENOUGH = 60


def main() -> None:
    """Print a line for each model, norm and peer."""
    print(f"{STEPS} steps of the peer, all else as its users find it; {SAMPLES} samples, {FEW} for ART")
    print("                                  queries    microseconds a query     time        median distance")
    print("  model            norm  peer     a sample      theirs      ours   theirs / ours   theirs     ours")
    ratios: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in MODELS:
            for norm in NORMS:
                for name, make in HOPSKIPJUMP.items():
                    try:
                        ratios.setdefault(name, []).append(_compare(model, norm, name, make))
                    except ImportError as error:
                        print(f"  {name} is not installed ({error})")
                    except ValueError as error:  # one sample without a start ends all of Foolbox's
                        print(f"  {model:16} {norm:5} {name:8} gave up: {error}")
    for name, found in ratios.items():
        print(
            f"  {name}: time theirs / ours {min(found):.1f} to {max(found):.1f}, median {statistics.median(found):.1f}"
        )


def _compare(model: str, norm: Norm, name: str, make: Maker) -> float:
    n = FEW if name == "ART" else SAMPLES
    settings: dict[str, Any] = {"source": "demo", "name": model}
    with shop([_arm(norm, 1)], samples=SAMPLES, shard=SAMPLES, model=settings) as place:
        x, y = (part[:n] for part in place.samples(place.cells[0]))
        counted = Counted(place.module(frozen=False))
        points, _ = _seeded(make(counted, norm=norm, steps=STEPS), x, y)
        attack = make(place.module(frozen=False), norm=norm, steps=STEPS)
        wall_theirs = seconds(lambda: _seeded(attack, x, y))
        owners = place.module(frozen=True)
    queries = counted.n_forward // n
    with shop([_arm(norm, queries)], samples=SAMPLES, shard=SAMPLES, model=settings) as place:
        results: list[CellResult] = []
        wall = seconds(lambda: results.append(place.carry_out(place.cells[0])))
    rows = results[0].tables["outcomes"].to_pylist()
    ours = torch.tensor([row[f"d_{norm}"] if row["outcome"] == "success" else torch.inf for row in rows[:n]])
    with torch.no_grad():
        broken = owners(points).argmax(1) != y
    theirs = torch.where(broken, length(points - x, norm), torch.inf)
    asked = sum(row["n_forward"] for row in rows)
    each, each_theirs = 1e6 * wall / asked, 1e6 * wall_theirs / counted.n_forward
    print(
        f"  {model:16} {norm:5} {name:8} {queries:7} {each_theirs:13.1f} {each:9.1f} {each_theirs / each:12.1f} "
        f"{float(theirs.median()):14.4f} {float(ours.median()):8.4f}",
        flush=True,
    )
    return each_theirs / each


def _seeded(attack: Attack, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
    torch.manual_seed(0)
    np.random.seed(0)
    return attack(x, y)


def _arm(norm: str, queries: int) -> dict[str, Any]:
    return {"attack": "hopskipjump", "norm": norm, "max_queries": queries, "steps": ENOUGH}


if __name__ == "__main__":
    main()
