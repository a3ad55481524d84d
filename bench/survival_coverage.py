"""Coverage: how often 95 % intervals of survival fits hold the truth, and how often calibration is doubted in vain.

Run: python -m bench survival_coverage (some minutes); `main` takes another number of runs.

Worlds: exact times with censoring; whole passes, at most 8 or 3, as intervals; samples that recur six or ten times,
with an effect of their own, where only errors by cluster can be right. Last, rows of which a share never fails, where a
law's median is refused.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.survival import FAMILIES, SurvivalFit, fit_survival, kaplan_meier
from advrisk.risk.survival.calibration import calibrated_on_half
from advrisk.risk.survival.families import family_named

RUNS = 1000
SHOWN = ("intercept", "eps", "kind", "shape", "median", "restricted mean", "mean", "survival")
SIGMA = 0.7
AT = {"eps": 1.0, "kind": 0.0}
TIME, UNTIL = 2.0, 5.0


@dataclass(frozen=True)
class World:
    n: int
    passes: bool = False
    samples: int = 0  # 0: every row is its own
    watched: float = 8.0  # on average; in passes, the most
    alike: float = 0.5  # the correlation of rows of one sample

    def table(self, family: str, rng: np.random.Generator) -> dict[str, Any]:
        n = self.n
        eps, kind = rng.uniform(0, 2, n), (rng.uniform(size=n) < 0.4).astype(float)
        log_t = 1 - 0.6 * eps + 0.4 * kind + SIGMA * self._noise(family, rng)
        t = np.exp(log_t) * (2 if self.passes else 1)
        stopped = np.full(n, self.watched) if self.passes else rng.exponential(self.watched, n) + 0.2
        event = t <= stopped
        t = np.ceil(np.minimum(t, stopped)) if self.passes else np.minimum(t, stopped)
        sample = np.arange(n) % self.samples if self.samples else np.arange(n)
        return {"eps": eps, "kind": kind, "t": t, "low": t - 1, "e": event.astype(float), "sample": sample}

    def _noise(self, family: str, rng: np.random.Generator) -> NDArray[np.float64]:
        """W; where samples recur, rows of one sample have normal scores are correlated."""
        from scipy.special import ndtr

        z = rng.normal(size=self.n)
        if self.samples:
            shared = rng.normal(size=self.samples)[np.arange(self.n) % self.samples]
            z = math.sqrt(1 - self.alike) * z + math.sqrt(self.alike) * shared
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


WORLDS = {
    "exact": World(300),
    "half censored": World(300, watched=1.5),
    "passes": World(300, passes=True),
    "at most 3 passes": World(300, passes=True, watched=3.0),
    "recurring": World(600, samples=100),
}
NEVER = ((0.0, 20), (0.0, 100), (0.3, 12), (0.3, 20), (0.3, 40), (0.3, 100))  # share of rows, and passes
FEW = {"30 samples recur": World(300, samples=30), "50 samples recur": World(500, samples=50)}
CALIBRATED = {
    "1000 rows": World(1000),
    "100 x 10 rows, alike by .5": World(1000, samples=100),
    "100 x 10 rows, alike by .8": World(1000, samples=100, alike=0.8),
    "60 x 10 passes": World(600, passes=True, samples=60),
}


def estimates(fit: SurvivalFit) -> dict[str, Any]:
    return {
        **{name: fit.coefficient(name).natural.estimate for name in ("intercept", "eps", "kind")},
        "shape": fit.coefficient("intercept", part="shape").natural.estimate,
        "median": median_of(fit, at=AT),
        "restricted mean": fit.mean(at=AT, until=UNTIL),
        "mean": fit.mean(at=AT),
        "survival": fit.survival(TIME, at=AT),
    }


def median_of(fit: SurvivalFit, **given: Any) -> Estimate | None:
    """The median by the law; None where the fit refuses it."""
    try:
        return fit.median(**given)
    except RiskError:
        return None


def coverage(world: World, family: str, runs: int) -> dict[str, float]:
    """Of the numbers that are given, how many hold the truth."""
    truth = world.truth(family)
    held, given = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for run in range(runs):
        found = estimates(world.fit(world.table(family, np.random.default_rng([run, world.n])), family))
        for name, value in truth.items():
            given[name] += found[name] is not None
            held[name] += found[name] is not None and found[name].low <= value <= found[name].high
    return {name: count / max(given[name], 1) for name, count in held.items()}


@dataclass(frozen=True)
class Medians:
    """Of medians where a share of the rows never fails; shares of the runs."""

    law: float  # the law's, were it not refused
    refused: float
    quoted: float  # those that are not refused and do not hold the truth
    kaplan_meier: float
    reached: float  # the median of the rows


def cured(family: str, *, never: float, watched: float, runs: int, n: int = 300) -> Medians:
    """Coverage of medians: rows in whole passes, a law with SIGMA and a scale of e^2, and rows that never fail."""
    law = family_named(family)
    truth = math.exp(2 + SIGMA * float(law.quantile(np.array([1 - 0.5 / (1 - never)]))[0]))
    found = np.zeros(5)
    for run in range(runs):
        t = np.exp(2 + SIGMA * World(n)._noise(family, rng := np.random.default_rng([run, 7])))
        t = np.where(rng.random(n) < never, np.inf, np.ceil(t))
        frame = {"t": np.minimum(t, watched), "e": (t <= watched).astype(float)}
        frame["low"] = frame["t"] - 1
        fit = fit_survival(frame, duration="t", event="e", covariates=[], family=family, lower="low")
        free = replace(fit)
        object.__setattr__(free, "cure_p_value", 1.0)
        by_law, by_rows = free.median(), kaplan_meier(frame["t"], frame["e"]).median()
        holds = by_law.low <= truth <= by_law.high
        refused = median_of(fit) is None
        held = by_rows.low <= math.ceil(truth) <= by_rows.high  # the pass at which it is noticed
        found += (holds, refused, not refused and not holds, held, math.isfinite(by_rows.value))
    return Medians(*(found / runs).tolist())


def doubted(world: World, family: str, runs: int) -> tuple[float, float, float]:
    """As an assessment does it, on a right law: how often its ICI is beyond chance at 5 % at one of three times.

    Then the mean ICI where it is farthest off, and what chance explains there.
    """
    beyond, off, chance = [], [], []
    for run in range(runs):
        table = world.table(family, np.random.default_rng([run, 2]))
        frame = {name: table[own] for name, own in {"duration": "t", "event": "e", "lower": "low"}.items()}
        frame |= {name: table[name] for name in ("eps", "kind", "sample")}
        options = {"duration": "duration", "event": "event", "covariates": ["eps", "kind"], "level": 0.95}
        options |= {"lower": "lower"} if world.passes else {}
        found, why = calibrated_on_half(frame, options, family, np.random.default_rng([run, 3]))
        if not found or any(one.by_chance is None for one in found):
            raise RuntimeError(why)
        beyond.append(any(one.ici > (one.by_chance or 0.0) for one in found))
        off.append(found[0].ici)
        chance.append(found[0].by_chance)
    return float(np.mean(beyond)), float(np.mean(off)), float(np.mean(chance))


def main(runs: int = RUNS, *, tiny: bool = False) -> None:
    """Print a line for each world and family."""
    runs = 1 if tiny else runs
    print(f"{'':16} {'':11} " + " ".join(f"{name:>9}" for name in SHOWN).replace("restricted mean", "mean to 5"))
    for name, world in {**WORLDS, **FEW}.items():
        for family in FAMILIES:
            found = coverage(world, family, runs)
            print(f"{name:16} {family:11} " + " ".join(f"{found[one]:9.1%}" for one in SHOWN), flush=True)
    for name, world in CALIBRATED.items():
        for family in FAMILIES:
            share, ici, chance = doubted(world, family, runs)
            print(f"{name:26} {family:11} beyond chance {share:5.1%}, ICI {ici:.3f}, chance {chance:.3f}", flush=True)
    print("medians of 300 rows of which a share never fails, watched for so many passes")
    for never, watched in NEVER:
        for family in FAMILIES:
            found = cured(family, never=never, watched=watched, runs=runs)
            print(
                f"{never:4.0%} of rows, {watched:3} passes {family:11} the law's holds {found.law:6.1%}, is refused "
                f"{found.refused:6.1%}, quoted and wrong {found.quoted:5.1%}; the rows' {found.kaplan_meier:6.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
