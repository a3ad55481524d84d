"""Relative damage: counting along one sorted order against comparing every two distances.

Run: PYTHONPATH=src python bench/damage.py
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.convergence import convergence
from advrisk.risk.damage import DamageComparison, detector_free_damage

Matrix = NDArray[np.float64]


def main() -> None:
    """Print times of both, with their ratio, and of what only the first can do."""
    print("value and jackknife      sorted      n^2   ratio")
    for n_models, n in ((10, 1000), (10, 3000)):
        matrix = _distances(n_models, n)
        fast, comparison = _best_of(5, partial(_sorted, matrix, resamples=1))
        slow, (values, _) = _best_of(2, partial(_quadratic, matrix))
        assert [estimate.value for estimate in comparison.estimates.values()] == values.tolist()
        print(f"{n_models:>4} x {n:<6}       {1e3 * fast:9.1f} ms {1e3 * slow:6.0f} ms {slow / fast:6.0f}")
    seconds, _ = _best_of(3, partial(_sorted, _distances(10, 10_000), resamples=1))
    print(f"  10 x 10000        {1e3 * seconds:9.1f} ms")
    print("with 2000 resamples")
    for n in (1000, 10_000):
        seconds, _ = _best_of(2, partial(_sorted, _distances(10, n), resamples=2000))
        print(f"  10 x {n:<6}       {1e3 * seconds:9.0f} ms")
    print("convergence: 40 numbers of samples, 50 resamples, 4 measures")
    by_model = {str(j): row for j, row in enumerate(_distances(10, 10_000))}
    seconds, _ = _best_of(2, partial(convergence, by_model, thresholds=[0.5], rng=np.random.default_rng(0)))
    print(f"  10 x 10000        {1e3 * seconds:9.0f} ms")


def _distances(n_models: int, n: int) -> Matrix:
    rng = np.random.default_rng(0)
    matrix = rng.exponential(size=(n_models, n))
    matrix[rng.random(matrix.shape) < 0.2] = np.inf
    matrix[rng.random(matrix.shape) < 0.05] = 0
    return matrix


def _sorted(matrix: Matrix, *, resamples: int) -> DamageComparison:
    by_model = {str(j): row for j, row in enumerate(matrix)}
    return detector_free_damage(by_model, resamples=resamples, rng=np.random.default_rng(0))


def _quadratic(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Values and delete-one-sample values, from all comparisons of one model with all distances."""
    n_models, n = matrix.shape
    total, without = np.empty(n_models), np.empty((n_models, n))
    for j, row in enumerate(matrix):
        greater = matrix[None] > row[:, None, None]  # (i, k, l)
        attacked, compared = greater.sum(axis=(1, 2)), greater.sum(axis=(0, 1))
        both = (matrix > row).sum(axis=0)
        total[j] = attacked.sum()
        without[j] = total[j] - attacked - compared + both
    return total / (n * n * n_models), without / ((n - 1) ** 2 * n_models)


def _best_of(repeats: int, work: Callable[[], Any]) -> tuple[float, Any]:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


if __name__ == "__main__":
    main()
