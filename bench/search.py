"""Searches: how many settings GP-UCB tries until it has found what a grid finds.

`python -m bench search`; the real model takes most of its time.
"""

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from advrisk import Study
from advrisk.ledger.searches import SearchRecord
from advrisk.plan import Search, SearchAxis, Setting
from advrisk.run.search.design import first_settings, grid_settings, random_settings
from advrisk.run.search.surrogate import next_settings
from advrisk.study import Arm
from bench.cells import here

Rate = Callable[[Setting], float]
NEAR = 0.99  # of the largest failure rate there is


@dataclass(frozen=True)
class Size:
    """How much is searched."""

    seeds: int = 3
    rounds: int = 30
    random: int = 5000  # settings of a random search
    fine: int = 200_000  # settings of the grid that finds the top
    surfaces: int = 4
    grid: int = 64  # settings on the real model
    samples: int = 128


TINY = Size(seeds=1, rounds=2, random=20, fine=100, surfaces=1, grid=3, samples=8)
HEADER = (
    """(a grid is charged whole, as it is laid out before anything is known; the others up to the first such setting)"""
)

UNIT = tuple(SearchAxis(name, 0.0, 1.0) for name in ("x", "y", "z"))
SIGMA = SearchAxis("sigma", 1e-4, 1.0, log=True)


def bump(x: float, top: float, width: float) -> float:
    return math.exp(-(((x - top) / width) ** 2))


SURFACES: dict[str, tuple[tuple[SearchAxis, ...], Rate, float]] = {
    "one parameter, by ratios": ((SIGMA,), lambda at: 0.5 * bump(math.log10(at["sigma"]), -2.7, 0.4), 0.5),
    "two parameters": (UNIT[:2], lambda at: 0.8 * bump(at["x"], 0.71, 0.3) * bump(at["y"], 0.23, 0.3), 0.8),
    "two parameters, a ridge": (
        (UNIT[0], SIGMA),
        lambda at: 0.6 * bump(at["x"] + math.log10(at["sigma"]) / 4, -0.1, 0.15) * bump(at["x"], 0.4, 0.4),
        0.6,
    ),
    "three parameters": (UNIT, lambda at: 0.9 * math.prod(bump(at[name], top, 0.4) for name, top in TOPS.items()), 0.9),
}
TOPS = {"x": 0.3, "y": 0.6, "z": 0.8}


def main(*, tiny: bool = False) -> None:
    """Print settings on made-up surfaces, then on a real model."""
    size = TINY if tiny else Size()
    print(f"settings tried until one has {NEAR:.0%} of the largest rate; medians over {size.seeds} seeds")
    print(HEADER)
    print(f"{'surface':28} {'grid':>6} {'random':>7} {'gp-ucb':>7} {'gp-ucb, 4 at a time':>20}")
    for name, (axes, rate, _) in list(SURFACES.items())[: size.surfaces]:
        top = _largest(axes, rate, size.fine)
        counts = [_of_grid(axes, rate, top), _of_random(axes, rate, top, size), _of_gp(axes, rate, top, size, 1)]
        print(
            f"{name:28} {counts[0]:>6} {counts[1]:>7} {counts[2]:>7} {_of_gp(axes, rate, top, size, 4):>20}", flush=True
        )
    _real(size)


def _search(axes: tuple[SearchAxis, ...], method: str, rounds: int, batch: int = 1) -> Search:
    arm = Arm("toy-linf-1", "attack", "toy", norm="linf", eps=1.0)
    return Search("plain", arm, "toy-linf-1", axes, method, rounds, batch, 0.1, 1, False, ("search", 0))


def _largest(axes: tuple[SearchAxis, ...], rate: Rate, fine: int) -> float:
    """The top, from a very fine grid."""
    n = round(fine ** (1 / len(axes)))
    return max(rate(setting) for setting in grid_settings(_search(axes, "grid", n ** len(axes))))


def _first(rates: list[float], top: float) -> float:
    return next((place + 1.0 for place, rate in enumerate(rates) if rate >= NEAR * top), math.inf)


def _shown(count: float) -> str:
    return f"{count:.0f}" if math.isfinite(count) else "more"


def _of_grid(axes: tuple[SearchAxis, ...], rate: Rate, top: float) -> str:
    """The size of the smallest grid that has such a point, where the next finer one has one, too."""
    for side in range(2, 200):
        if all(_reaches(axes, rate, top, finer) for finer in (side, side + 1)):
            return _shown(side ** len(axes))
    return "more"


def _reaches(axes: tuple[SearchAxis, ...], rate: Rate, top: float, side: int) -> bool:
    return max(map(rate, grid_settings(_search(axes, "grid", side ** len(axes))))) >= NEAR * top


def _of_random(axes: tuple[SearchAxis, ...], rate: Rate, top: float, size: Size) -> str:
    drawn = (random_settings(_search(axes, "random", size.random), seed) for seed in range(size.seeds))
    return _shown(median(_first([*map(rate, settings)], top) for settings in drawn))


def _of_gp(axes: tuple[SearchAxis, ...], rate: Rate, top: float, size: Size, batch: int) -> str:
    found = []
    for seed in range(size.seeds):
        one = _search(axes, "gp-ucb", size.rounds, batch)
        settings = first_settings(one, seed)
        for n_round in range(1, size.rounds + 1):
            rates = [rate(each) for each in settings]
            if max(rates) >= NEAR * top:
                break
            settings += next_settings(one, settings, rates, n_round=n_round, seed=seed)
        found.append(_first([rate(each) for each in settings], top))
    return _shown(median(found))


def _real(size: Size) -> None:
    """PGD against the demo's plain model: both searches as a user would run them."""
    print(
        f"\nPGD (linf 0.1, 4 steps) over its step size, on {size.samples} digits of MNIST and the demo's plain model:"
    )
    grid, gp = (_found(method, n, size) for method, n in (("grid", size.grid), ("gp-ucb", size.rounds)))
    best = max(trial.failures for trial in grid.trials)
    place = _first([float(trial.failures) for trial in gp.trials], best / NEAR)
    n = grid.n_samples
    print(f"  grid: {best} of {n} broken at worst, {len(grid.trials)} settings")
    worst = max(trial.failures for trial in gp.trials)
    print(
        f"  gp-ucb: {worst} of {n} broken at worst, {len(gp.trials)} settings; "
        f"as many as the grid after {_shown(place)}"
    )
    shares = np.quantile([trial.failures for trial in grid.trials], [0.5, 0.9])
    print(f"  (half of the grid's settings break at most {shares[0]:.0f}, nine in ten at most {shares[1]:.0f})")


def _found(method: str, rounds: int, size: Size) -> SearchRecord:
    models, modules = {"plain": {"source": "demo", "name": "plain"}}, None
    if size == TINY:
        models, modules = here(models)
    entry: dict[str, Any] = {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 4, "race": False}
    study = {
        "name": "bench",
        "data": {"source": "mnist-5k", "evaluate": 1, "tune": size.samples},
        "models": models,
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
        "search": [entry | {"method": method, "rounds": rounds}],
    }
    with tempfile.TemporaryDirectory() as folder:
        (one,) = Study.from_dict(study).run(Path(folder) / "run", modules=modules).searches()
        return one


if __name__ == "__main__":
    main()
