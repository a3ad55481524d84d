"""Intervals of survival fits against laws that are known: how often do 95 % intervals hold the truth?

Worlds: exact times with censoring; whole passes, as intervals; samples that recur, with an effect of their own, where
only errors by cluster can be right. Counted are coefficients, a median, a restricted mean, and survival.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from advrisk.risk.survival import FAMILIES, SurvivalFit, fit_survival, kaplan_meier
from advrisk.risk.survival.families import family_named

RUNS = 1000
SIGMA = 0.7
AT = {"eps": 1.0, "kind": 0.0}
TIME, UNTIL = 2.0, 5.0


@dataclass(frozen=True)
class World:
    n: int
    passes: bool = False
    samples: int = 0  # 0: every row is its own

    def table(self, family: str, rng: np.random.Generator) -> dict[str, Any]:
        n = self.n
        eps, kind = rng.uniform(0, 2, n), (rng.uniform(size=n) < 0.4).astype(float)
        log_t = 1 - 0.6 * eps + 0.4 * kind + SIGMA * self._noise(family, rng)
        t = np.exp(log_t) * (2 if self.passes else 1)
        stopped = np.full(n, 8.0) if self.passes else rng.exponential(8.0, n) + 0.2
        event = t <= stopped
        t = np.ceil(np.minimum(t, stopped)) if self.passes else np.minimum(t, stopped)
        sample = np.arange(n) % self.samples if self.samples else np.arange(n)
        return {"eps": eps, "kind": kind, "t": t, "low": t - 1, "e": event.astype(float), "sample": sample}

    def _noise(self, family: str, rng: np.random.Generator) -> NDArray[np.float64]:
        """W; where samples recur, rows of one sample have normal scores with a correlation of one half."""
        from scipy.special import ndtr

        z = rng.normal(size=self.n)
        if self.samples:
            z = (z + rng.normal(size=self.samples)[np.arange(self.n) % self.samples]) / math.sqrt(2)
        return family_named(family).quantile(1 - ndtr(z)) if family != "lognormal" else z

    def fit(self, table: dict[str, Any], family: str) -> SurvivalFit:
        return fit_survival(
            table,
            duration="t",
            event="e",
            covariates=["eps", "kind"],
            family=family,
            lower="low" if self.passes else None,
            cluster="sample" if self.samples else None,
        )

    def truth(self, family: str) -> dict[str, float]:
        law, shift = family_named(family), math.log(2) if self.passes else 0.0
        eta = 1 + shift - 0.6
        z = (math.log(UNTIL) - eta) / SIGMA
        log_mean = float(law.log_mean(np.array([SIGMA]))[0][0])
        return {
            "intercept": 1 + shift,
            "eps": -0.6,
            "kind": 0.4,
            "shape": law.shape_sign * math.log(SIGMA),
            "median": math.exp(eta + SIGMA * float(law.quantile(np.array([0.5]))[0])),
            "restricted mean": UNTIL * float(law.restricted(np.array([SIGMA]), np.array([z]))[0]),
            "mean": math.exp(eta + log_mean),
            "survival": math.exp(float(law.log_survival(np.array([(math.log(TIME) - eta) / SIGMA])).value[0])),
        }


WORLDS = {"exact": World(300), "passes": World(300, passes=True), "recurring": World(600, samples=100)}


def estimates(fit: SurvivalFit) -> dict[str, Any]:
    return {
        **{name: fit.coefficient(name).natural.estimate for name in ("intercept", "eps", "kind")},
        "shape": fit.coefficient("intercept", part="shape").natural.estimate,
        "median": fit.median(at=AT),
        "restricted mean": fit.mean(at=AT, until=UNTIL),
        "mean": fit.mean(at=AT),
        "survival": fit.survival(TIME, at=AT),
    }


def coverage(world: World, family: str, runs: int) -> dict[str, float]:
    truth = world.truth(family)
    held = dict.fromkeys(truth, 0)
    for run in range(runs):
        found = estimates(world.fit(world.table(family, np.random.default_rng([run, world.n])), family))
        for name, value in truth.items():
            held[name] += found[name].low <= value <= found[name].high
    return {name: count / runs for name, count in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_cover_as_they_say(world: str, family: str) -> None:
    found = coverage(WORLDS[world], family, RUNS)
    print(world, family, found)
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_about_as_they_say(family: str) -> None:
    """Sixty runs: at 95 %, fewer than 49 come with a probability below 1e-4 each."""
    found = coverage(WORLDS["passes"], family, 60)
    assert all(share > 48.5 / 60 for share in found.values()), found


@pytest.mark.slow
def test_rows_that_recur_are_too_sure_without_clusters() -> None:
    """The reason for clusters: an effect that the rows of a sample share is found with too narrow an interval."""
    world = WORLDS["recurring"]
    held = 0
    for run in range(300):
        table = world.table("lognormal", np.random.default_rng([run, 5]))
        fit = fit_survival(table, duration="t", event="e", covariates=["eps", "kind"], family="lognormal")
        found = fit.coefficient("intercept").natural.estimate
        held += found.low <= 1 <= found.high
    assert held / 300 < 0.92


@pytest.mark.slow
def test_kaplan_meier_intervals_cover_as_they_say() -> None:
    """An exponential law, a third of it censored; at three heights of the curve, and the restricted mean."""
    held = np.zeros(4)
    for run in range(RUNS):
        rng = np.random.default_rng([run, 6])
        t, stopped = rng.exponential(size=150), rng.exponential(2.0, 150)
        curve = kaplan_meier(np.minimum(t, stopped), t <= stopped)
        found = [*(curve.at(time) for time in (0.1, 0.7, 1.3)), curve.mean(1.3)]
        truth = [*np.exp([-0.1, -0.7, -1.3]), 1 - np.exp(-1.3)]
        held += [one.low <= value <= one.high for one, value in zip(found, truth, strict=True)]
    assert ((held / RUNS >= 0.93) & (held / RUNS <= 0.98)).all(), held / RUNS
