"""How far the limits of damage under a fitted evasion curve are from those of very many draws.

Run: python -m bench evasion_limits. Curves, weights and limits are drawn anew here, without the quadrature of the
product; the last column is what 1,000 drawn curves with four sets of weights each would leave to the seed.
"""

import time

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.absolute import damage_probability
from advrisk.risk.evasion import EvasionCurve, fit_bayesian, fit_logistic, values_of

Floats = NDArray[np.float64]
LEVEL = 0.95
BATCH = 20_000


def main(*, tiny: bool = False) -> None:
    """Print the limits, their errors, the noise of the reference, and seconds."""
    measure(*(2 * BATCH, (20,), (5,)) if tiny else (1_000_000, (20, 60), (40, 300)))


def measure(draws: int, answers: tuple[int, ...], samples: tuple[int, ...]) -> None:
    """Print a line for each curve, number of answers and number of samples."""
    print(f"{'curve':10} answers samples  low, high         error of both      reference ±      s   1,000 curves ±")
    for n_answers in answers:
        rng = np.random.default_rng(n_answers)
        sizes = np.exp(rng.uniform(np.log(0.02), 0.0, n_answers))
        undetected = rng.random(n_answers) < 1 / (1 + (sizes / 0.2) ** 3)
        rates = fit_bayesian(sizes, undetected, guess=None, lapse=None)
        curves = {
            "bayesian": fit_bayesian(sizes, undetected),
            "rates": rates,
            "logistic": fit_logistic(sizes, undetected),
        }
        for n in samples:
            distances = np.where(rng.random(n) < 0.5, np.exp(rng.normal(np.log(0.2), 0.5, n)), np.inf)
            for name, curve in curves.items():
                print(f"{name:10} {n_answers:7} {n:7}  {line(curve, distances, draws)}", flush=True)


def line(curve: EvasionCurve, distances: Floats, draws: int) -> str:
    """One line of the table, from its limits on."""
    began = time.process_time()
    found = damage_probability(distances, curve, level=LEVEL, rng=np.random.default_rng(0))
    took = time.process_time() - began
    parts = np.array([limits(curve, distances, BATCH, seed) for seed in range(max(draws // BATCH, 2))])
    expected, noise = parts.mean(axis=0), parts.std(axis=0, ddof=1) / np.sqrt(len(parts))
    few = np.array([limits(curve, distances, 4000, seed, per_curve=4) for seed in range(20)]).std(axis=0, ddof=1)
    errors = np.array([found.low, found.high]) - expected
    return (
        f"{found.low:.4f}, {found.high:.4f}  {errors[0]:+.5f} {errors[1]:+.5f}  {noise[0]:.5f} {noise[1]:.5f}"
        f"  {took:.2f}  {few[0]:.5f} {few[1]:.5f}"
    )


def limits(curve: EvasionCurve, distances: Floats, n: int, seed: int, *, per_curve: int = 1) -> tuple[float, float]:
    """Quantiles of drawn means: gamma weights of samples that are alike, and one sample that was not seen."""
    rng = np.random.default_rng(seed)
    sizes, counts = np.unique(distances, return_counts=True)
    weights = rng.standard_gamma(np.append(counts, 1.0), (n, sizes.size + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    values = np.repeat(values_of(curve.draws(n // per_curve, rng), sizes), per_curve, axis=0)
    means = (weights[:, :-1] * values).sum(axis=1)
    tail = (1 - LEVEL) / 2
    return float(np.quantile(means, tail)), float(np.quantile(means + weights[:, -1], 1 - tail))


if __name__ == "__main__":
    main()
