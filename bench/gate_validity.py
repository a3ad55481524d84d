"""How often a gate passes although a requirement is not met, where it must be at most (1 - level) / 2.

Run: python -m bench gate_validity. `main` takes another number of simulated runs. The truth lies exactly at the limit,
or a hair beyond it.
"""

import numpy as np
from numpy.typing import NDArray

from advrisk.assess.gate import decide, share_estimate
from advrisk.assess.gate.estimates import damage_estimate, damage_pair_estimate
from advrisk.core.estimate import Estimate
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import fit_logistic

LEVEL = 0.95
DIFFERENT = {20: 0.3, 100: 0.1}  # share of distances that differ: with fewer of so few samples nothing could ever pass
Floats = NDArray[np.float64]


def main(runs: int = 2000, *, tiny: bool = False) -> None:
    """Print all tables."""
    runs = 4 if tiny else runs
    print(f"Wrong passes at level {LEVEL}, {runs:,} simulated runs; at most {(1 - LEVEL) / 2:g} is allowed\n")
    for n in (20,) if tiny else (20, 100, 500):
        _row(f"a share at its limit, n = {n}, exactly", max(share_passes(n, limit) for limit in (0.05, 0.1, 0.2, 0.5)))
    for n in (20, 100):
        _row(f"damage under a known curve, n = {n}", known_curve(n, runs, seed=1))
        _row(f"a difference of damage, n = {n}", known_difference(n, runs, share=DIFFERENT[n], seed=2))
    _row("damage under a fitted curve, n = 100, 60 answers", fitted_curve(100, 60, runs // 4, seed=3))
    for unknown in (0, 10):
        _row(
            f"a share, n = 100, {unknown} without a verdict, the worst", unknown_passes(100, unknown, 0.2, runs, seed=4)
        )
    found = whole_gate(100, runs, seed=5)
    _row("a gate of five, one at its limit", found["one"])
    _row("a gate of five, all at their limits", found["all"])
    _row("wrong fails: a gate of five, all at their limits", found["fails"])


def share_passes(n: int, limit: float) -> float:
    """The share of samples of n that pass `<= limit` where that is the truth, summed over all of them."""
    from scipy.special import gammaln

    hits = np.arange(n + 1)
    ways = np.exp(gammaln(n + 1) - gammaln(hits + 1) - gammaln(n - hits + 1))
    probability = ways * limit**hits * (1 - limit) ** (n - hits)
    passes = [_passes(share_estimate(np.arange(n) < k, level=LEVEL).estimate, limit) for k in hits]
    return float(probability[np.array(passes)].sum())


def known_curve(n: int, runs: int, *, seed: int) -> float:
    """Damage of exp(-d) with distances of which a third is inf and the rest is exponential: its mean is 1/3."""
    rng = np.random.default_rng(seed)
    limit = 2 / 3 * 0.5
    return float(np.mean([_passes(_damage(_distances(n, rng), rng), limit) for _ in range(runs)]))


def known_difference(n: int, runs: int, *, share: float, seed: int) -> float:
    """A model that is worse by exactly the margin: of its distances, so many are 0 instead."""
    rng, hits = np.random.default_rng(seed), 0
    margin = share * (1 - 1 / 3)
    for _ in range(runs):
        old = _distances(n, rng)
        new = np.where(rng.random(n) < share, 0.0, old)
        found = compare_damage({"new": new, "old": old}, _unnoticed, level=LEVEL, rng=rng)
        hits += _passes(damage_pair_estimate(found, "new", "old", n_unknown=0, rng=rng).estimate, margin)
    return hits / runs


def fitted_curve(n: int, answers: int, runs: int, *, seed: int) -> float:
    """A logistic curve of which only some answers are known; distances are 0, 1 and 2 equally often, or inf."""
    rng, hits = np.random.default_rng(seed), 0
    sizes = np.array([0.0, 1.0, 2.0, np.inf])
    truth = float(np.mean(_logistic(sizes[:3])) * 0.75)
    for _ in range(runs):
        asked = rng.uniform(0, 3, answers)
        curve = fit_logistic(asked, rng.random(answers) < _logistic(asked))
        found = compare_damage({"m": rng.choice(sizes, n)}, curve, level=LEVEL, rng=rng)
        hits += _passes(damage_estimate(found, "m", n_unknown=0, rng=rng).estimate, truth)
    return hits / runs


def unknown_passes(n: int, unknown: int, limit: float, runs: int, *, seed: int) -> float:
    """A share at its limit, of which so many samples that have it give no verdict."""
    rng, hits = np.random.default_rng(seed), 0
    for _ in range(runs):
        flags = np.sort(rng.random(n) < limit)[::-1]
        seen = flags[min(unknown, int(flags.sum())) :]
        hits += _passes(share_estimate(seen, level=LEVEL, n_unknown=n - seen.size).estimate, limit)
    return hits / runs


def whole_gate(n: int, runs: int, *, seed: int) -> dict[str, float]:
    """Five shares: one at its limit and four far below, or all at their limits."""
    rng, found = np.random.default_rng(seed), {"one": 0, "all": 0, "fails": 0}
    for _ in range(runs):
        at = [share_estimate(rng.random(n) < 0.2, level=LEVEL).estimate for _ in range(5)]
        below = [share_estimate(rng.random(n) < 0.02, level=LEVEL).estimate for _ in range(4)]
        found["one"] += all(_passes(one, 0.2) for one in (at[0], *below))
        found["all"] += all(_passes(one, 0.2) for one in at)
        found["fails"] += any(one is not None and decide(one, "<=", 0.2) == "fail" for one in at)
    return {name: n_hits / runs for name, n_hits in found.items()}


def _passes(estimate: Estimate | None, limit: float) -> bool:
    return estimate is not None and decide(estimate, "<=", limit) == "pass"


def _damage(distances: Floats, rng: np.random.Generator) -> Estimate | None:
    found = compare_damage({"m": distances}, _unnoticed, level=LEVEL, rng=rng)
    return damage_estimate(found, "m", n_unknown=0, rng=rng).estimate


def _distances(n: int, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(n) < 1 / 3, np.inf, rng.exponential(size=n))


def _unnoticed(sizes: Floats, /) -> Floats:
    return np.asarray(np.exp(-np.asarray(sizes, dtype=np.float64)))


def _logistic(sizes: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(2 * (sizes - 1))))


def _row(name: str, share: float) -> None:
    print(f"  {name:60}{share:8.4f}", flush=True)


if __name__ == "__main__":
    main()
