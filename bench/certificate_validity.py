"""How often certificates are given although the risk is alpha, where it must be at most zeta, and how often below it.

Run: python -m bench certificate_validity. `main` takes the number of simulated calibration sets.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.certificate import certified_sizes, certify, p_value, power
from advrisk.risk.certificate.betting import log_wealth
from advrisk.risk.certificate.counts import Count
from advrisk.risk.certificate.p_values import METHODS, Method

ALPHA, ZETA = 0.1, 0.05

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def main(sets: int = 10_000, *, tiny: bool = False) -> None:
    """Print all tables."""
    sets = 5 if tiny else sets
    sizes = (10, 20) if tiny else (100, 1000)
    print(f"alpha = {ALPHA}, zeta = {ZETA}, {sets:,} simulated calibration sets\n")
    print(f"{'Certified at a risk of exactly alpha':58}  n = {sizes[0]}  n = {sizes[1]:,}")
    for method in METHODS:
        _row(f"  {method}, once, at the end", *(once(method, n, sets, seed=n) for n in sizes))
    for method in (*METHODS, "betting"):
        _row(f"  {method}, looked at each time", *(peeking(method, n, sets, seed=n) for n in sizes))
    _row("  betting, the best of 60 orders", *(best_order(n, max(sets // 20, 1), seed=n) for n in sizes))
    print(f"\n{'Certified at other risks, n = 1,000':58}" + "".join(f"{risk:9.3f}" for risk in RISKS))
    for method in METHODS:
        _row(f"  {method}", *(float(power(1000, risk, ALPHA, ZETA, method=method)) for risk in RISKS))
    for name, strategy in STRATEGIES.items():
        _row(f"  {name}", *(betting_power(strategy, sizes[-1], risk, max(sets // 5, 1), seed=3) for risk in RISKS))
    print("\nSearch, and a test at a largest risk of exactly alpha, n = 1,000")
    for name, found in searching(sets, seed=4).items():
        _row(f"  {name}", found)
    print("\nAny false certificate, several claims at once")
    for name, found in many_claims(sets, seed=5).items():
        _row(f"  {name}", found)


RISKS = (0.03, 0.05, 0.06, 0.07, 0.075, 0.08, 0.09)


def once(method: Method, n: int, sets: int, *, seed: int) -> float:
    """Share of sets that certify when they are looked at once."""
    failures = np.random.default_rng(seed).binomial(n, ALPHA, sets)
    return float(np.mean(p_value(failures, n, ALPHA, method=method) <= ZETA))


def peeking(method: str, n: int, sets: int, *, seed: int) -> float:
    """Share of sets that certify at some time, when they are looked at after every sample.

    The p of bets remembers the most that was ever owned, so one look at the end says the same as all of them.
    """
    if method == "betting":
        return float(
            np.mean(np.concatenate([wealth.max(axis=1) for wealth in _wealth(n, ALPHA, sets, seed)]) >= -np.log(ZETA))
        )
    rng, t = np.random.default_rng(seed), np.arange(1, n + 1)
    triangle = [p_value(np.arange(size + 1), size, ALPHA, method=method) <= ZETA for size in t]  # type: ignore[arg-type]
    most = np.array([flags.sum() - 1 for flags in triangle])
    return float(np.mean([(_losses(rng, 1, n, ALPHA).cumsum() <= most).any() for _ in range(sets)]))


def best_order(n: int, sets: int, *, seed: int, orders: int = 60) -> float:
    """Share of sets that bets certify at some time in one of so many orders: what choosing a seed would give."""
    rng = np.random.default_rng(seed)
    tried = (rng.permuted(np.repeat(_losses(rng, 1, n, ALPHA), orders, axis=0), axis=1) for _ in range(sets))
    return float(np.mean([log_wealth(losses, ALPHA).max() >= -np.log(ZETA) for losses in tried]))


def betting_power(strategy: Callable[[Floats, float], Floats], n: int, risk: float, sets: int, *, seed: int) -> float:
    """Share of sets that a way to bet certifies at some time."""
    rng, hits = np.random.default_rng(seed), []
    for size in _pieces(sets):
        hits.append(strategy(_losses(rng, size, n, risk), ALPHA).max(axis=1) >= -np.log(ZETA))
    return float(np.concatenate(hits).mean())


def adaptive_bets(losses: Floats, alpha: float) -> Floats:
    """ln K of aGRAPA, a way to bet that is often advised: nu from mean and variance of the losses so far."""
    t = np.arange(losses.shape[1])
    mean = (np.cumsum(losses, axis=1) - losses + alpha) / (t + 1)
    nu = np.clip((alpha - mean) / (mean * (1 - mean) + (alpha - mean) ** 2), 0, 0.9 / (1 - alpha))
    return np.asarray(np.cumsum(np.log1p(nu * (alpha - losses)), axis=1))


def level_bets(losses: Floats, alpha: float) -> Floats:
    """ln K where all gamblers start with the same."""
    shares, total = np.arange(1, 40) / 40, np.full(losses.shape, -np.inf)
    for share in shares:
        gains = np.cumsum(np.log1p(share / (1 - alpha) * (alpha - losses)), axis=1)
        total = np.logaddexp(total, gains - np.log(shares.size))
    return total


STRATEGIES = {"betting": log_wealth, "betting, equal parts": level_bets, "betting, aGRAPA": adaptive_bets}

SETTINGS, ROUNDS, MODELS, N = 60, 50, 20, 1000


def searching(sets: int, *, seed: int) -> dict[str, float]:
    """An attack whose worst setting breaks exactly alpha; and 20 defences, each of which exactly alpha gets past."""
    rng, certified = np.random.default_rng(seed), dict.fromkeys(SEARCHES, 0)
    surface = ALPHA * (0.2 + 0.8 * np.exp(-(((np.arange(SETTINGS) - 40) / 6) ** 2) / 2))
    test = p_value(np.arange(N + 1), N, ALPHA)
    for _ in range(sets):
        tune, calibrate = (rng.binomial(N, surface) for _ in range(2))
        visited = climb(tune)
        on_tune, on_calibrate = test[tune[visited]], test[calibrate[visited]]
        defences = rng.binomial(N, ALPHA, (2, MODELS))
        safest = defences[0].argmin()
        values = (on_tune.mean(), on_calibrate.mean(), on_tune.max(), on_calibrate.max())
        values += (test[defences[0, safest]], test[defences[1, safest]])
        for name, value in zip(SEARCHES, values, strict=True):
            certified[name] += value <= ZETA
    return {name: count / sets for name, count in certified.items()}


SEARCHES = (
    "attack: mean p of the rounds, same samples (as printed)",
    "attack: mean p of the rounds, other samples",
    "attack: largest p of the rounds, same samples",
    "attack: largest p of the rounds, other samples",
    "the safest of 20 defences, same samples",
    "the safest of 20 defences, other samples",
)


def climb(failures: NDArray[np.int64]) -> NDArray[np.int64]:
    """Settings that a search visits: nine to begin with, then neighbours of the best one so far, nearest first."""
    visited = list(range(3, SETTINGS, SETTINGS // 9))[:9]
    while len(visited) < ROUNDS:
        best = max(visited, key=lambda setting: failures[setting])
        visited.append(min(set(range(SETTINGS)) - set(visited), key=lambda setting: abs(setting - best)))
    return np.array(visited)


CLAIMS = (
    "largest eps of 5 models, shared zeta",
    "largest eps of 5 models, zeta each",
    "largest eps of one model, in order",
    "largest eps of one model, the largest with p <= zeta",
    "list, union and wrong, on one certificate",
)


def many_claims(sets: int, *, seed: int) -> dict[str, float]:
    """Risks that pass alpha along a grid of sizes, not always rising, and are near it beyond."""
    rng, false = np.random.default_rng(seed), dict.fromkeys(CLAIMS, 0)
    risks = np.array([0.03, 0.06, ALPHA, 0.09, ALPHA, ALPHA, ALPHA, ALPHA])
    sizes = [float(size) for size in range(1, len(risks) + 1)]
    test = p_value(np.arange(N + 1), N, ALPHA)
    for _ in range(sets):
        p = test[rng.binomial(N, risks, (5, len(risks)))]
        grids = {str(model): dict(zip(sizes, row, strict=True)) for model, row in enumerate(p)}
        alone = [_largest(certified_sizes({name: grid}, ZETA)[name].largest) for name, grid in grids.items()]
        values = (
            any(_largest(one.largest) >= 3 for one in certified_sizes(grids, ZETA).values()),
            max(alone) >= 3,
            alone[0] >= 3,
            (p[0, risks >= ALPHA] <= ZETA).any(),
            _false_claim(rng),
        )
        for name, value in zip(CLAIMS, values, strict=True):
            false[name] += bool(value)
    return {name: count / sets for name, count in false.items()}


def _largest(size: float | None) -> float:
    return 0.0 if size is None else size


def _false_claim(rng: np.random.Generator) -> bool:
    """Arms of risk alpha and 0.095; the union and what is wrong in the end are above alpha, too."""
    draws = rng.random(N)
    one, other, clean = draws < ALPHA, (draws > 0.005) & (draws < 0.1), draws > 0.997
    counts = {name: Count(int(flags.sum()), N, "set") for name, flags in {"one": one, "other": other}.items()}
    union, wrong = (Count(int(flags.sum()), N, "set") for flags in (one | other, clean))
    found = certify(counts, alpha=ALPHA, zeta=ZETA, union=union, clean=wrong)
    return found.worst.certified or found.union.certified or bool(found.wrong and found.wrong.certified)


def _wealth(n: int, risk: float, sets: int, seed: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    return (log_wealth(_losses(rng, size, n, risk), ALPHA) for size in _pieces(sets))


def _pieces(sets: int) -> list[int]:
    """So many sets, at most 500 at a time."""
    return [min(500, sets - first) for first in range(0, sets, 500)]


def _losses(rng: np.random.Generator, sets: int, n: int, risk: float) -> Floats:
    return (rng.random((sets, n)) < risk).astype(np.float64)


def _row(name: str, *shares: float) -> None:
    print(f"{name:58}" + "".join(f"{share:9.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
