"""Relative damage: counting along one sorted order against comparing every two distances.

Run: python -m bench damage.
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


def main(*, tiny: bool = False) -> None:
    """Print times of both, with their ratio, and of what only the first can do."""
    models, some, more, many = (3, 10, 20, 30) if tiny else (10, 1000, 3000, 10_000)
    resamples = 10 if tiny else 2000
    print("value and jackknife      sorted      n^2   ratio")
    for n in (some, more):
        matrix = _distances(models, n)
        fast, comparison = _best_of(5, partial(_sorted, matrix, resamples=1))
        slow, (values, _) = _best_of(2, partial(_quadratic, matrix))
        assert [estimate.value for estimate in comparison.estimates.values()] == values.tolist()
        print(f"{models:>4} x {n:<6}       {1e3 * fast:9.1f} ms {1e3 * slow:6.0f} ms {slow / fast:6.0f}")
    seconds, _ = _best_of(3, partial(_sorted, _distances(models, many), resamples=1))
    print(f"{models:>4} x {many:<6}       {1e3 * seconds:9.1f} ms")
    print(f"with {resamples} resamples")
    for n in (some, many):
        seconds, _ = _best_of(2, partial(_sorted, _distances(models, n), resamples=resamples))
        print(f"{models:>4} x {n:<6}       {1e3 * seconds:9.0f} ms")
    print("convergence: 40 numbers of samples, 50 resamples, 4 measures")
    by_model = {str(j): row for j, row in enumerate(_distances(models, many))}
    seconds, _ = _best_of(2, partial(convergence, by_model, thresholds=[0.5], rng=np.random.default_rng(0)))
    print(f"{models:>4} x {many:<6}       {1e3 * seconds:9.0f} ms")


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
