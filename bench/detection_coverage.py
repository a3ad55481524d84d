"""Coverage: how often 95 % intervals of AUROC and of the false-positive rate hold the truth.

Run: python -m bench detection_coverage. `main` takes another number of runs.

A clean input scores N(0, 1). What each of K arms makes of it scores N(shift, 1), and may have something in common with
the clean input. A group of arms breaks a share of the samples, with all of them. There is one group for each shift.
Truths come from numerical integration.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.detection import worst_case_scores
from advrisk.risk.detection.arm_sets import ArmSetRates, arm_set_rates, average
from advrisk.risk.detection.performance import auroc_difference, auroc_estimate, fpr_estimate

LEVEL, TPR, RESAMPLES = 0.95, 0.95, 200
NODES = np.linspace(-9, 9, 3001)  # of integrals over the normal distribution
WEIGHTS = np.exp(-(NODES**2) / 2) / np.sqrt(2 * np.pi) * (NODES[1] - NODES[0])

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """How scores come about."""

    n: int
    shifts: tuple[float, ...]
    arms: int = 2
    share: float = 1.0
    common: float = 0.0  # correlation of an attacked score with the clean one of the same sample

    def draw(self, rng: np.random.Generator) -> list[ArmSetRates]:
        """One study."""
        clean = rng.normal(size=self.n)
        worst = []
        for shift in self.shifts:
            own = rng.normal(size=(self.arms, self.n))
            scores = shift + self.common * clean + np.sqrt(1 - self.common**2) * own
            broken = rng.random(self.n) < self.share
            broken[rng.integers(self.n)] = True
            worst.append(worst_case_scores(scores, np.broadcast_to(broken, scores.shape)))
        return arm_set_rates(clean, worst, tpr=TPR, level=LEVEL, resamples=RESAMPLES, rng=rng)

    def auroc(self, shift: float) -> float:
        """P(the least score of the arms > that of another sample's clean input)."""
        return float(self._above(shift, NODES) @ WEIGHTS)

    def fpr(self, shift: float) -> float:
        """P(clean score >= t) where t is what the least score of the arms exceeds with probability TPR."""
        from scipy.optimize import brentq
        from scipy.special import ndtr

        threshold = brentq(lambda t: float(self._above(shift, np.array(t))) - TPR, shift - 9, shift + 3)
        return float(ndtr(-threshold))

    def _above(self, shift: float, threshold: Floats) -> Floats:
        """P(the least of the arms >= threshold): given their own clean input, and then over it."""
        from scipy.special import ndtr

        own = np.sqrt(1 - self.common**2)
        beyond = ndtr((shift + self.common * NODES - threshold[..., None]) / own)
        return np.asarray(beyond**self.arms @ WEIGHTS)


WORLDS = {
    "usual": World(100, (0.5, 1.5), common=0.5),
    "few broken": World(100, (1.0, 2.0), share=0.2),
    "opposed": World(200, (1.0, 2.0), common=-0.7),
    "strong": World(100, (3.0, 4.0)),
    "near perfect": World(60, (5.0, 6.0)),
}
MORE = {
    "small": World(30, (1.0, 2.0)),
    "one arm": World(100, (0.0, 1.0), arms=1),
    "hopeless": World(100, (-2.0, -3.0), arms=4),
    "large": World(1000, (1.0, 3.0), common=0.5),
    "large, few broken": World(1000, (2.0, 4.0), share=0.1),
    "large, opposed": World(1000, (1.0, 2.0), common=-0.7),
}


def main(runs: int = 1000, worlds: Mapping[str, World] = WORLDS | MORE, *, tiny: bool = False) -> None:
    """Print the share of intervals that hold the truth."""
    runs = 1 if tiny else runs
    print(f"{runs} runs; share of 95 % intervals that hold the truth")
    print("                       n  broken  AUROC   average  FPR     average  difference of AUROC")
    for name, world in worlds.items():
        held = [1 - missed / runs for missed in misses(world, runs, seed=8).values()]
        shown = "  ".join(f"{share:6.1%}" for share in held)
        print(f"{name:18} {world.n:5}  {world.share:5.0%}  {shown}", flush=True)


def misses(world: World, runs: int, *, seed: int) -> dict[str, int]:
    """How often the truth lies outside: of a group, of the average of all, and of the difference of two."""
    aurocs, rates = ([of(shift) for shift in world.shifts] for of in (world.auroc, world.fpr))
    truths = {"auroc": aurocs[0], "average auroc": np.mean(aurocs), "fpr": rates[0], "average fpr": np.mean(rates)}
    truths["difference"] = aurocs[0] - aurocs[1]
    missed = dict.fromkeys(truths, 0)
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        parts = world.draw(rng)
        both = average(parts)
        found = {
            "auroc": auroc_estimate(parts[0], LEVEL),
            "average auroc": auroc_estimate(both, LEVEL),
            "fpr": fpr_estimate(parts[0], LEVEL),
            "average fpr": fpr_estimate(both, LEVEL),
            "difference": auroc_difference(parts[0], parts[1], LEVEL),
        }
        for name, estimate in found.items():
            missed[name] += not estimate.low <= truths[name] <= estimate.high
    return missed


if __name__ == "__main__":
    main()
