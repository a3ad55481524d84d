"""How often the shape of an evasion curve is doubted, rightly or in vain, and what following the advice gives.

Run: python -m bench evasion_shape. `main` takes other numbers of simulated studies. The detector has the shape that the
fit assumes, or another: a logistic curve in the log of the size where one in the size is fitted; two kinds of detector,
of which one notices six times as much; or three plateaus. Coverage is that of 95 % intervals of damage: of the fit as
it is, and of a user who fits a monotone curve instead where the shape is doubted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from advrisk.risk.damage import damage_probability
from advrisk.risk.evasion import EvasionCurve, fit_bayesian, fit_logistic, fit_monotone, shape_test
from bench.coverage import (
    PER_LABELLER,
    SPREAD,
    Detector,
    Floats,
    Margin,
    careless,
    different,
    labellers,
    log_logistic,
    logistic,
    staircase,
    with_catches,
)

ALPHA = 0.05
SAMPLES = 200
DISTANCES = Margin(0.02, 0.6, grid=0.5)  # equal distances, which rest on few values of the curve
Ask = Callable[[Detector, np.random.Generator], tuple[Any, ...]]
Fit = Callable[..., EvasionCurve]


def two_kinds(sizes: Floats) -> Floats:
    """Half of the detectors notice six times as much as the others."""
    return (log_logistic(np.asarray(sizes) / 0.4) + log_logistic(np.asarray(sizes) / 2.5)) / 2


def plateaus(sizes: Floats) -> Floats:
    """1, 0.6 and 0.1."""
    return 1 - 0.4 * (np.asarray(sizes) > 0.3) - 0.5 * (np.asarray(sizes) > 2)


def spread(answers: int) -> Ask:
    """Sizes chosen before any answer is known, from a fifth to five times the threshold."""

    def ask(detector: Detector, rng: np.random.Generator) -> tuple[Any, ...]:
        sizes = np.exp(rng.uniform(-np.log(5), np.log(5), answers))
        return sizes, rng.random(answers) < detector(sizes)

    return ask


@dataclass(frozen=True)
class World:
    detector: Detector
    fit: Fit
    ask: Ask


_rates: Fit = partial(fit_bayesian, guess=None, lapse=None)


def _by_labeller(sizes: Floats, undetected: Any, who: Any) -> EvasionCurve:
    return fit_bayesian(sizes, undetected, labellers=who)


RIGHT: dict[str, World] = {
    "logistic, 60 answers": World(logistic, fit_logistic, spread(60)),
    "logistic, 300": World(logistic, fit_logistic, spread(300)),
    "bayesian, 60": World(log_logistic, fit_bayesian, spread(60)),
    "bayesian, 300": World(log_logistic, fit_bayesian, spread(300)),
    "bayesian, sizes chosen by answers": World(log_logistic, fit_bayesian, staircase),
    "bayesian, learned rates": World(careless, _rates, with_catches),
    f"bayesian, 4 labellers x {PER_LABELLER}": World(different, _by_labeller, labellers(4, SPREAD)),
}
WRONG: dict[str, World] = {
    f"{name}, {fit.__name__}, {n}": World(detector, fit, spread(n))
    for n in (60, 300)
    for name, detector, fit in (
        ("log-logistic", log_logistic, fit_logistic),
        ("two kinds", two_kinds, fit_logistic),
        ("two kinds", two_kinds, fit_bayesian),
        ("plateaus", plateaus, fit_logistic),
        ("plateaus", plateaus, fit_bayesian),
    )
}


def fitted(world: World, rng: np.random.Generator) -> EvasionCurve:
    """The detector is asked again if its answers are all alike, as one would do."""
    while True:
        answers = world.ask(world.detector, rng)
        if answers[1].any() and not answers[1].all():
            return world.fit(*answers)


def doubted(world: World, runs: int, *, seed: int) -> float:
    """How often the shape is doubted at ALPHA."""
    rng = np.random.default_rng(seed)
    tests = (shape_test(fitted(world, rng)) for _ in range(runs))
    return float(np.mean([found is not None and found.p_value <= ALPHA for found in tests]))


def coverage(world: World, runs: int, *, seed: int) -> tuple[float, float, float]:
    """Of the fit as it is, of a user who follows the advice, and how often that is another fit."""
    rng, found = np.random.default_rng(seed), np.zeros(3)
    distances = DISTANCES.distances((np.arange(400_000) + 0.5) / 400_000)
    truth = float(world.detector(distances[np.isfinite(distances)]).sum()) / distances.size
    for _ in range(runs):
        curve = fitted(world, rng)
        test, answers = shape_test(curve), curve.answers  # type: ignore[attr-defined]
        doubt = test is not None and test.p_value <= ALPHA
        seen = DISTANCES.distances(rng.random(SAMPLES))
        own = damage_probability(seen, curve, rng=rng)
        advised = damage_probability(seen, fit_monotone(answers.sizes, answers.undetected), rng=rng) if doubt else own
        found += [own.low <= truth <= own.high, advised.low <= truth <= advised.high, doubt]
    return tuple((found / runs).tolist())  # type: ignore[return-value]


def main(runs: int = 200, *, tiny: bool = False) -> None:
    """Print a line for each detector and fit; half as many studies of the wrong ones."""
    runs = 2 if tiny else runs
    print(f"The shape is right, and doubted at {ALPHA:g} in ({runs:,} studies)")
    for name, world in RIGHT.items():
        print(f"  {name:36}{doubted(world, runs, seed=1):6.1%}", flush=True)
    print(f"The shape is wrong: doubted; coverage of the fit, and after following the advice ({runs // 2:,} studies)")
    for name, world in WRONG.items():
        as_it_is, advised, doubts = coverage(world, runs // 2, seed=2)
        print(f"  {name:36}{doubts:6.1%}{as_it_is:9.1%}{advised:9.1%}", flush=True)


if __name__ == "__main__":
    main()
