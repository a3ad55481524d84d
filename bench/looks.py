"""Runs that stop when they know enough: how often their intervals cover, and how often their decisions are wrong.

Run: python -m bench looks. `main` takes another number of simulated runs. Shares are counted exactly, over all that can
happen; damage is simulated. Looks are those of a run: after 64 samples, then after half as many more each time.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from advrisk.assess.gate import decide
from advrisk.core.estimate import Estimate
from advrisk.risk.absolute import compare_damage
from advrisk.risk.damage import detector_free_damage
from advrisk.risk.decision import ahead_of, decided_pairs
from advrisk.risk.interim import alpha_share, interim_schedule, strict_level
from advrisk.risk.proportion import proportion

LEVEL = 0.95
SHARD = 64
Floats = NDArray[np.float64]
World = Callable[[int, np.random.Generator], Mapping[str, Floats]]  # distances by model


def main(runs: int = 2000, *, tiny: bool = False) -> None:
    """Print all tables."""
    runs, truths = (20, TRUTHS[::100]) if tiny else (runs, TRUTHS)
    most, more = (4, 3) if tiny else (64, 32)  # shards
    print(f"Intervals of {LEVEL:.0%} of runs that stop once they are narrow enough, and how often they cover")
    for margin in (0.02, 0.05, 0.1):
        found = [stopped_share_coverage(p, margin, most) for p in truths]
        said = f"a share, ±{margin:g}, up to {most * SHARD:,} samples, exactly"
        print(f"  {said}  {np.mean(found):.4f} in the mean of {len(found)} truths, {min(found):.4f} at worst")
    for margin in (0.03, 0.06):
        found = stopped_damage_coverage(margin, more, runs, seed=1)
        print(f"  damage under a curve, ±{margin:g}, up to {more * SHARD:,} samples  {found:.4f}")
    for margin in (0.02, 0.03):
        found = stopped_relative_coverage(margin, more, runs, seed=2)
        print(f"  relative damage, ±{margin:g}, up to {more * SHARD:,} samples  {found:.4f}")
    print(f"\nWrong decisions, of which {1 - LEVEL:.2f} are allowed; of a share also by looks that do not share that")
    for n_shards, n_runs in ((2, 1), (most, 1)) if tiny else ((8, runs // 4), (most, runs // 20)):
        print(f"  {len(_looks(n_shards))} looks, up to {n_shards * SHARD:,} samples, {n_runs:,} runs")
        for what, world in WORLDS.items():
            print(f"    {what:45}{wrong_decisions(world, n_shards, n_runs, seed=3):>10.4f}", flush=True)
        shared, naive = (max(wrong_passes(p, n_shards, shares=shares) for p in LIMITS) for shares in (True, False))
        print(f"    {'a share that is the limit, exactly':45}{shared:>10.4f}{naive:>10.4f}")


TRUTHS = np.linspace(0.0025, 0.5, 200)
LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def _alike(n: int, rng: np.random.Generator, n_models: int) -> Mapping[str, Floats]:
    """Models of which none is better: what is hard for one is hard for all, and some samples resist."""
    common = rng.exponential(size=n)
    drawn = {f"m{j}": common * rng.lognormal(0, 0.5, n) for j in range(n_models)}
    return {name: np.where(found > 2, np.inf, found) for name, found in drawn.items()}


def two_alike(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
    return _alike(n, rng, 2)


def four_alike(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
    return _alike(n, rng, 4)


def two_rarely_apart(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
    """The same distances but for one sample in ten, on which either falls at once."""
    common, which = rng.exponential(size=n), rng.random(n)
    return {"m0": np.where(which < 0.05, 0.0, common), "m1": np.where(which > 0.95, 0.0, common)}


def rarely_fails(share: float) -> World:
    """One model falls at once on a rare kind of sample, and is a little better on all others; in all, they are alike.

    d is uniform on [1, 2]; m0 = d, but 0 with probability q; m1 = d - s. Of independent samples i and l,
    P(m0_i > m1_l) = (1 - q)(1 - (1 - s)^2 / 2). As m0 is tied with itself with probability q^2, relative damage is
    equal where that is 1/2 - q^2/4, which gives s.
    """
    shift = 1 - np.sqrt(2 - (1 - share**2 / 2) / (1 - share))

    def world(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
        common = rng.uniform(1, 2, n)
        return {"m0": np.where(rng.random(n) < share, 0.0, common), "m1": common - shift}

    return world


def rarely_opposed(share: float) -> World:
    """The same, but on that kind of sample the other model resists: no sample could say more against the first.

    P(m0_i > m1_l) = (1 - q)^2 (1 - (1 - s)^2 / 2) is to be 1/2, as both are tied with themselves as often.
    """
    shift = 1 - np.sqrt(2 - 1 / (1 - share) ** 2)

    def world(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
        common, rare = rng.uniform(1, 2, n), rng.random(n) < share
        return {"m0": np.where(rare, 0.0, common), "m1": np.where(rare, np.inf, common - shift)}

    return world


WORLDS: Mapping[str, World] = {
    "two models alike": two_alike,
    "four models alike": four_alike,
    "two models that differ on one sample in ten": two_rarely_apart,
    **{f"one falls at once on {share:.0%} of samples": rarely_fails(share) for share in (0.1, 0.05, 0.02, 0.01)},
    **{f"and the other resists, on {share:.0%}": rarely_opposed(share) for share in (0.1, 0.05, 0.02, 0.01)},
}


def wrong_decisions(world: World, n_shards: int, runs: int, *, seed: int) -> float:
    """How often some look names a best model, where none is."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(runs):
        found = world(n_shards * SHARD, rng)
        looks = _levels(n_shards, shares=True, n_models=len(found))
        wrong += any(_decided(found, n, level) for n, level in looks)
    return wrong / runs


def _decided(distances: Mapping[str, Floats], n: int, level: float) -> bool:
    first = {name: found[:n] for name, found in distances.items()}
    rng = np.random.default_rng(0)
    pairs = decided_pairs(detector_free_damage(first, level=level, resamples=1, rng=rng))
    best = pairs[0].lower
    return not ahead_of(best, pairs) and not any(one.undecided for one in pairs if best in (one.lower, one.higher))


def wrong_passes(limit: float, n_shards: int, *, shares: bool) -> float:
    """How often some look decides `<= limit`, either way, where the share is the limit; counted over all paths."""
    going_on, before, decided = np.ones(1), 0, 0.0
    for n, level in _levels(n_shards, shares=shares):
        going_on, before = _after(going_on, n - before, limit), n
        ends = np.array([decide(one, "<=", limit) != "undecided" for one in _intervals(n, level)])
        decided += float(going_on[ends].sum())
        going_on = np.where(ends, 0.0, going_on)
    return decided


def stopped_share_coverage(truth: float, margin: float, n_shards: int) -> float:
    """How often the interval covers where a run stopped, or ended; counted over all paths."""
    going_on, before, covered, looks = np.ones(1), 0, 0.0, _looks(n_shards)
    for n in looks:
        going_on, before = _after(going_on, n - before, truth), n
        found = _intervals(n, LEVEL)
        ends = np.array([n == looks[-1] or _width(one) <= margin for one in found])
        covers = np.array([one.low <= truth <= one.high for one in found])
        covered += float(going_on[ends & covers].sum())
        going_on = np.where(ends, 0.0, going_on)
    return covered


def stopped_damage_coverage(margin: float, n_shards: int, runs: int, *, seed: int) -> float:
    """Damage of exp(-d), where a third of the distances is inf and the rest is exponential: its mean is 1/3."""

    def told(found: Mapping[str, Floats], rng: np.random.Generator) -> Estimate:
        return compare_damage(found, _unnoticed, level=LEVEL, rng=rng).estimates["m"]

    def world(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
        return {"m": np.where(rng.random(n) < 1 / 3, np.inf, rng.exponential(size=n))}

    return _coverage(world, told, 1 / 3, margin, n_shards, runs, seed)


def stopped_relative_coverage(margin: float, n_shards: int, runs: int, *, seed: int) -> float:
    """The first of three models, whose distances are U, U + 1/2 and 2: P = (1/3)(1/2 + 7/8 + 1), for U in [0, 1]."""

    def told(found: Mapping[str, Floats], rng: np.random.Generator) -> Estimate:
        return detector_free_damage(found, level=LEVEL, resamples=1, rng=rng).estimates["a"]

    def world(n: int, rng: np.random.Generator) -> Mapping[str, Floats]:
        first, second = rng.random(n), rng.random(n)
        return {"a": first, "b": second + 0.5, "c": np.full(n, 2.0)}

    return _coverage(world, told, (0.5 + 0.875 + 1) / 3, margin, n_shards, runs, seed)


def _coverage(
    world: World,
    told: Callable[[Mapping[str, Floats], np.random.Generator], Estimate],
    truth: float,
    margin: float,
    n_shards: int,
    runs: int,
    seed: int,
) -> float:
    rng, covered = np.random.default_rng(seed), 0
    for _ in range(runs):
        distances = world(n_shards * SHARD, rng)
        for n in _looks(n_shards):
            found = told({name: one[:n] for name, one in distances.items()}, rng)
            if _width(found) <= margin:
                break
        covered += found.low <= truth <= found.high
    return covered / runs


def _levels(n_shards: int, *, shares: bool, n_models: int = 2) -> list[tuple[int, float]]:
    """Samples and level of every look; as for one look alone, if they do not share."""
    looks, spent, levels = _looks(n_shards), list[float](), []
    for n in looks:
        spent.append(alpha_share([], spent, len(looks)))
        levels.append((n, strict_level(LEVEL, spent[-1], n_models=n_models) if shares else LEVEL))
    return levels


def _looks(n_shards: int) -> Sequence[int]:
    return [SHARD * place for place in interim_schedule([SHARD] * n_shards)]


def _after(state: Floats, n: int, truth: float) -> Floats:
    """The law of hits after n samples more."""
    from scipy.special import gammaln, xlog1py, xlogy

    hits = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(hits + 1) - gammaln(n - hits + 1)
    return np.convolve(state, np.exp(ways + xlogy(hits, truth) + xlog1py(n - hits, -truth)))


@cache
def _intervals(n: int, level: float) -> list[Estimate]:
    """Of every number of hits."""
    return [proportion(hits, n, level=level) for hits in range(n + 1)]


def _width(found: Estimate) -> float:
    return max(found.high - found.value, found.value - found.low)


def _unnoticed(sizes: Floats, /) -> Floats:
    return np.asarray(np.exp(-np.asarray(sizes, dtype=np.float64)))


if __name__ == "__main__":
    main()
