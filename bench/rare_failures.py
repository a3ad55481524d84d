"""How often one of two equal models is named, and how often a limit passes that is not met, where failures are rare.

Run: python -m bench rare_failures. `main` takes another number of simulated studies. One model fails totally on a small
share of the samples and hardly ever otherwise; the other loses a little on every sample, and as much on average. Few
samples show the failures, so what is wrong is wrong in favour of the model that has them. Beside the intervals that are
used stand those that know the samples' spread alone: Student's of a difference, Korn and Graubard's of a risk.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.core.estimate import Estimate
from advrisk.risk.damage import detector_free_damage
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.proportion import half_width, share_interval
from bench.looks import rarely_fails

LEVEL = 0.95
SLIGHT = 0.01  # mean loss of the model with rare failures, on other samples
SIZES = (150, 300, 1000)
RARE = (0.01, 0.02, 0.05)
HEAD = "it is named     the other       limit passes    width of both   width of risk"
SHARES = ("unsafe", "other", "passes")
RAIN = Scenario.from_mapping("rain", {"rain": 1})
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """Shares of the studies, and mean widths."""

    unsafe: float  # the model with rare failures is named
    other: float  # the other one is
    passes: float  # its risk passes `<=` its true value
    fails: float
    width: float  # of the difference
    risk_width: float


def relative(rare: float | None, n: int, runs: int, *, seed: int) -> tuple[Errors, Errors]:
    """Relative damage of two equal models: as it is decided, and by Student's interval; no risk passes or fails."""
    rng = np.random.default_rng([seed, n])
    world = rarely_fails(rare) if rare else _unlike
    found, usual = [], []
    for _ in range(runs):
        made = detector_free_damage(world(n, rng), level=LEVEL, resamples=1, rng=rng)
        difference, (error, _) = made.difference("m0", "m1"), made.standard_errors("m0", "m1")
        half = half_width(error, n, LEVEL)
        found.append(_counted((difference.low, difference.high)))
        usual.append(_counted((difference.value - half, difference.value + half)))
    return _mean(found), _mean(usual)


def by_scenario(rare: float | None, n: int, runs: int, *, seed: int) -> tuple[Errors, Errors]:
    """Risk under a scenario, likewise: as it is decided, and by the intervals that know the spread alone."""
    rng = np.random.default_rng([seed, n])
    found, usual = [], []
    for _ in range(runs):
        first, second, truth = _losses(rare, n, rng)
        tensors = {"m0": _tensor(first), "m1": _tensor(second)}
        branch = compare_models(tensors, RAIN, rng=rng, details=False).branches[""]
        difference, risk = branch.difference("m0", "m1"), branch.estimates["m0"]
        found.append(_counted((difference.low, difference.high), risk, truth))
        gap, half = difference.value, half_width(_error(first - second), n, LEVEL)
        alone = Estimate(risk.value, *share_interval(risk.value, _error(first), n, LEVEL), LEVEL, n, "Korn-Graubard")
        usual.append(_counted((gap - half, gap + half), alone, truth))
    return _mean(found), _mean(usual)


def _losses(rare: float | None, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """Of both models, and the mean of either; without rare failures both are uniform."""
    if rare is None:
        return rng.random(n), rng.random(n), 0.5
    mean = rare + (1 - rare) * SLIGHT
    first = np.where(rng.random(n) < rare, 1.0, rng.uniform(0, 2 * SLIGHT, n))
    return first, rng.uniform(0, 2 * mean, n), mean


def _unlike(n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Two models that fail at sizes of their own, and equally."""
    return {"m0": rng.exponential(size=n), "m1": rng.exponential(size=n)}


def _tensor(losses: Floats) -> RiskTensor:
    return RiskTensor.from_arrays(losses[:, None], arms=["rain"], kind=["corruption"], ranges={"loss": (0.0, 1.0)})


def _error(values: Floats) -> float:
    return float(values.std(ddof=1)) / float(np.sqrt(values.size))


def _counted(difference: tuple[float, float], risk: Estimate | None = None, truth: float = 0.0) -> list[float]:
    low, high = difference
    of_risk = [0.0, 0.0] if risk is None else [float(risk.high <= truth), float(risk.low > truth)]
    return [float(high < 0), float(low > 0), *of_risk, high - low, 0.0 if risk is None else risk.high - risk.low]


def _mean(rows: list[list[float]]) -> Errors:
    return Errors(*np.mean(rows, axis=0).tolist())


Study = Callable[..., tuple[Errors, Errors]]
STUDIES: dict[str, Study] = {"relative damage": relative, "risk by a scenario": by_scenario}


def main(runs: int = 2000, *, tiny: bool = False) -> None:
    """Print a line for each world and number of samples."""
    runs, sizes = (2, (30,)) if tiny else (runs, SIZES)
    print(f"Two equal models, {runs:,} studies a line, level {LEVEL}; beside each number that by the spread alone")
    print(f"{'failures on':>27}      n  {HEAD}")
    for name, study in STUDIES.items():
        for rare in (*RARE, None):
            for n in sizes:
                world = "none" if rare is None else f"{rare:.0%}"
                print(f"{name:19}{world:>8}{n:7}  {_cells(*study(rare, n, runs, seed=1))}", flush=True)


def _cells(found: Errors, usual: Errors) -> str:
    shares = [f"{getattr(found, one):6.1%} {getattr(usual, one):6.1%}" for one in SHARES]
    widths = [f"{getattr(found, one):.3f} {getattr(usual, one):.3f}" for one in ("width", "risk_width")]
    cells = [*shares, *widths] if found.risk_width else [*shares[:2], f"{'–':>13}", widths[0], "–"]
    return "   ".join(cells)


if __name__ == "__main__":
    main()
