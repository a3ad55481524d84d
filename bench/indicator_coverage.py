"""Coverage: how often 95 % intervals of risks under a scenario hold the truth, and of paired differences 0.

Run: python -m bench indicator_coverage. `main` takes another number of runs.

A sample is easy or hard, and is photographed by day or by night. What an arm does to it depends on these alone, so that
a hard sample fails under nearly all arms: the rows of one sample say little more than one row. Truths are sums over the
four kinds of sample. Test samples may be drawn unlike the deployment: by strata, or by sample weights. In some worlds
a branch or a stratum rests on a handful of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.indicators import RiskTensor, Scenario, indicator_tree
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.indicators.scenario import drawn_shares

ARMS = ("clean", "rain-1", "rain-2", "fog", "pgd", "square")
KINDS = ("clean", "corruption", "corruption", "corruption", "attack", "attack")
FAMILIES = ("clean", "rain", "rain", "fog", "pgd", "square")
TOWN: dict[str, Any] = {
    "wet": {"weight": 0.3, "of": {"rain": 0.7, "fog": 0.2}},
    "attacked": {"weight": 0.05, "of": ["pgd", "square"]},
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """How losses come about; `easy` and `hard` are probabilities of failure under each arm."""

    n: int
    easy: tuple[float, ...] = (0.01, 0.03, 0.05, 0.05, 0.15, 0.1)
    hard: tuple[float, ...] = (0.6, 0.9, 0.95, 0.95, 1.0, 0.9)
    night: float = 0.3  # share of the test samples
    exactly: bool = False  # as many of them, rather than so many on average
    hard_by: tuple[float, float] = (0.1, 0.3)  # share of hard samples by day, and by night
    repeats: int = 3
    weighted: float | None = None  # share of hard samples among those drawn; sample weights put it right
    cost: float = 1.0  # of one failure in ten, others cost 1
    bounded: bool = True
    noise: float = 0.0  # standard deviation of what is added to every loss
    scenario: Mapping[str, Any] = field(default_factory=lambda: TOWN)

    def draw(self, rng: np.random.Generator, *, models: int = 1) -> list[RiskTensor]:
        """Tensors of models that find the same samples hard, and differ in nothing but luck."""
        place = np.arange(self.n) / self.n
        night = (place if self.exactly else rng.random(self.n)) < self.night - 1e-9
        true = np.array(self.hard_by)[night.astype(int)]
        chance = true if self.weighted is None else np.full(self.n, self.weighted)
        hard = rng.random(self.n) < chance
        weight = np.ones(self.n)
        if self.weighted is not None:
            weight = np.where(hard, true / chance, (1 - true) / (1 - chance))
        return [self._tensor(rng, night, hard, weight) for _ in range(models)]

    def _tensor(self, rng: np.random.Generator, night: Any, hard: Any, weight: Floats) -> RiskTensor:
        chance = np.where(hard[:, None], np.array(self.hard), np.array(self.easy))
        values = (rng.random((self.n, len(ARMS), self.repeats)) < chance[:, :, None]).astype(np.float64)
        values[:, :, 1:] = np.where(np.array(KINDS)[:, None] == "corruption", values[:, :, 1:], np.nan)
        if self.cost != 1:
            values *= np.where(rng.random(values.shape) < 0.1, self.cost, 1.0)
        if self.noise:
            values += self.noise * rng.standard_normal(values.shape)
        return RiskTensor.from_arrays(
            values,
            arms=ARMS,
            kind=KINDS,
            family=FAMILIES,
            weight=weight,
            strata={"light": np.where(night, "night", "day").tolist()},
            ranges={"loss": (0.0, max(1.0, self.cost))} if self.bounded else {},
        )

    def truths(self, scenario: Scenario, rng: np.random.Generator) -> dict[str, float]:
        """Path -> the true risk given that branch; uncertain weights are drawn, too."""
        night = scenario.strata.get("light", {}).get("night", self.night)
        found: dict[str, float] = {}
        found[""] = self._level(scenario.branches, "", {}, night, rng, found, dirichlet=scenario.dirichlet)
        return found

    def _level(
        self, branches: Any, path: str, where: Any, night: float, rng: Any, found: Any, *, dirichlet: bool
    ) -> float:
        shares = drawn_shares(branches, 1, rng, dirichlet=dirichlet)[0][0]
        total = rest = 0.0
        for branch, share in zip(branches, shares, strict=True):
            inside = f"{path}.{branch.name}" if path else branch.name
            within = {**where, **branch.where}
            if branch.of and not branch.listed:
                value = self._level(branch.of, inside, within, night, rng, found, dirichlet=branch.dirichlet)
            else:
                names = [one.name for one in branch.of] or [branch.name]
                value = self._leaf(names, within, night)
            found[inside] = value
            total, rest = total + share * value, rest + share
        return total + max(0.0, 1 - rest) * self._leaf(["clean"], where, night)

    def _leaf(self, names: list[str], where: Any, night: float) -> float:
        """The mean over the four kinds of sample."""
        arms = [place for place in range(len(ARMS)) if FAMILIES[place] in names]
        nights = {"night": 1.0, "day": 0.0}.get(where["light"][0]) if "light" in where else night
        total = 0.0
        for share, hard in ((1 - nights, self.hard_by[0]), (nights, self.hard_by[1])):
            for part, chance in ((hard, np.array(self.hard)), (1 - hard, np.array(self.easy))):
                total += share * part * self._value(chance[arms], attack=KINDS[arms[0]] == "attack")
        return total

    def _value(self, chance: Floats, *, attack: bool) -> float:
        if not attack:
            return float(chance.mean()) * (0.9 + 0.1 * self.cost)
        none = float(np.prod(1 - chance))
        dear = 1 - float(np.prod(1 - 0.1 * chance))  # some failure is a dear one
        return dear * self.cost + (1 - none - dear) if self.cost != 1 else 1 - none


_RARE = World(200, easy=(0.0,) * 6, hard=(0.2, 0.3, 0.5, 0.5, 0.9, 0.9), hard_by=(0.01, 0.03))
_NIGHTS = {**TOWN, "strata": {"light": {"day": 0.2, "night": 0.8}}}
_WHERE = {
    "wet": {"weight": 0.3, "of": {"rain": {"weight": 0.5, "where": {"light": "night"}}, "fog": 0.3}},
    "attacked": {"weight": 0.1, "where": {"light": "night"}, "of": ["pgd", "square"]},
}
_BETA = {"wet": {"weight": {"beta": [6, 14]}, "of": {"rain": 0.7, "fog": 0.2}}, "pgd": {"beta": [2, 38]}}
_DIRICHLET = {"dirichlet": True, "wet": {"weight": 6, "of": {"rain": 0.7, "fog": 0.2}}, "pgd": 1, "clean": 13}
_FEW = {"rain": {"weight": 0.1, "where": {"light": "night"}}, "fog": 0.2}
_HALF = {"rain": {"weight": 0.5, "where": {"light": "night"}}}
_THIRD = {"rain": {"weight": 0.3, "where": {"light": "night"}}}
_MORE = {"rain": {"weight": 0.2, "where": {"light": "night"}}, "fog": 0.2}
_RARER = {**TOWN, "strata": {"light": {"day": 0.8, "night": 0.2}}}
_FEW_BETA = {"rain": {"weight": {"beta": [6, 34]}, "where": {"light": "night"}}, "fog": 0.2}

_OPPOSITE = (0.02, 0.02, 0.02, 0.02, 0.97, 0.97)  # nearly 0 in one branch, and nearly 1 in the other

WORLDS = {
    "usual": World(200),
    "rare failures": _RARE,
    "strata": World(200, scenario=_NIGHTS),
    "sample weights": World(200, weighted=0.4),
    "only at night": World(200, scenario=_WHERE),
    "beta": World(200, scenario=_BETA),
    "dirichlet": World(200, scenario=_DIRICHLET),
    "5 at night": World(300, night=5 / 300, exactly=True, scenario=_FEW),
    "4, no range": World(300, night=4 / 300, exactly=True, bounded=False, noise=1.0, scenario=_HALF),
}
MORE = {
    "small": World(40),
    "very rare": World(200, easy=(0.0,) * 6, hard=(0.2, 0.3, 0.5, 0.5, 0.9, 0.9), hard_by=(0.002, 0.005)),
    "independent": World(200, hard_by=(0.0, 0.0)),
    "costs": World(400, cost=10.0),
    "no range": World(400, bounded=False),
    "weights and strata": World(300, weighted=0.4, scenario=_NIGHTS),
    "beta, few samples": World(50, scenario=_BETA),
    "30 at night": World(
        500, night=30 / 500, exactly=True, easy=(0.01, 0.02, 0.03, 0.03, 0.1, 0.1), hard_by=(0.03, 0.03), scenario=_MORE
    ),
    "2 at night": World(300, night=2 / 300, exactly=True, scenario=_FEW),
    "5 of a stratum": World(300, night=5 / 300, exactly=True, scenario=_RARER),
    "5, beta": World(300, night=5 / 300, exactly=True, scenario=_FEW_BETA),
    "opposite branches": World(100, easy=_OPPOSITE, hard=_OPPOSITE, scenario={"pgd": 0.3}),
    "4, less, no range": World(300, night=4 / 300, exactly=True, bounded=False, noise=1.0, scenario=_THIRD),
}
ALIKE = (
    *("usual", "rare failures", "sample weights", "beta", "costs"),
    *("5 at night", "30 at night", "5 of a stratum", "5, beta", "4, no range", "4, less, no range"),
)


def misses(world: World, runs: int, *, seed: int) -> dict[str, int]:
    """Branch -> how often the interval of its risk did not hold the truth."""
    scenario = Scenario.from_mapping("town", world.scenario)
    rng = np.random.default_rng(seed)
    found: dict[str, int] = {}
    for _ in range(runs):
        tree = indicator_tree(world.draw(rng)[0], scenario, rng=rng)
        truths = world.truths(scenario, rng)
        for indicator in tree.walk():
            if indicator.path in truths:
                missed = not indicator.value.low <= truths[indicator.path] <= indicator.value.high
                found[indicator.path] = found.get(indicator.path, 0) + missed
    return found


def false_decisions(world: World, runs: int, *, seed: int) -> dict[str, int]:
    """Branch -> how often two models that are alike were told apart."""
    scenario = Scenario.from_mapping("town", world.scenario)
    rng = np.random.default_rng(seed)
    found: dict[str, int] = {}
    for _ in range(runs):
        tensors = dict(zip("ab", world.draw(rng, models=2), strict=True))
        result = compare_models(tensors, scenario, rng=rng, details=False)
        for path, branch in result.branches.items():
            found[path] = found.get(path, 0) + (not branch.undecided("a", "b"))
    return found


def main(runs: int = 1000, *, tiny: bool = False) -> None:
    """Print the coverage of every branch in every world."""
    runs = 1 if tiny else runs
    print(f"{runs:,} runs; coverage of 95 % intervals, of the whole scenario and the worst of its branches")
    for name, world in (WORLDS | MORE).items():
        found = misses(world, runs, seed=1)
        told = {path or "whole": 1 - missed / runs for path, missed in found.items()}
        worst = min(told, key=lambda path: told[path])
        print(f"{name:<20} whole {told['whole']:.1%}   worst {told[worst]:.1%} ({worst})", flush=True)
    print("two models that are alike told apart, whole scenario and most often")
    for name in ALIKE:
        apart = {path or "whole": n / runs for path, n in false_decisions((WORLDS | MORE)[name], runs, seed=2).items()}
        worst = max(apart, key=lambda path: apart[path])
        print(f"{name:<20} whole {apart['whole']:.1%}   most {apart[worst]:.1%} ({worst})", flush=True)


if __name__ == "__main__":
    main()
