"""Bounds of a difference against a linear programme over all falling curves."""

import numpy as np
import pytest
from scipy.optimize import linprog

from advrisk.risk.evasion import MonotoneCurve
from advrisk.risk.evasion.monotone import difference_bounds


def by_linear_programme(
    curve: MonotoneCurve, first: np.ndarray, second: np.ndarray, weights: np.ndarray
) -> list[float]:
    sizes = np.unique(np.concatenate([first, second, curve.knots]))
    sizes = sizes[np.isfinite(sizes)]
    gain = np.array([weights[first == size].sum() - weights[second == size].sum() for size in sizes])
    limits = [
        (curve.middle[curve.knots == size][0],) * 2 if (curve.knots == size).any() else (0.0, 1.0) for size in sizes
    ]
    falls = np.eye(sizes.size)[1:] - np.eye(sizes.size)[:-1]
    ends = [linprog(sign * gain, A_ub=falls, b_ub=np.zeros(len(falls)), bounds=limits).fun for sign in (1, -1)]
    return [ends[0], -ends[1]]


@pytest.mark.parametrize("seed", range(20))
def test_no_falling_curve_goes_further(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    knots = np.sort(rng.choice(np.arange(1, 10), 3, replace=False)).astype(float)
    values = np.sort(rng.random(3))[::-1]
    first, second = (rng.choice([0.0, 1.0, 2.0, 2.5, 4.0, 5.5, 7.0, 9.0, 11.0, np.inf], n) for _ in range(2))
    weights = rng.dirichlet(np.ones(n), size=3)
    curve = MonotoneCurve(knots, values, values)
    low, high = difference_bounds(curve, first, second, weights)
    for row in range(3):
        assert [low[row], high[row]] == pytest.approx(by_linear_programme(curve, first, second, weights[row]), abs=1e-9)


def test_models_that_were_never_broken_do_not_differ() -> None:
    curve = MonotoneCurve(np.array([1.0]), np.array([0.5]), np.array([0.5]))
    never = np.full(4, np.inf)
    low, high = difference_bounds(curve, never, never, np.full((2, 4), 0.25))
    assert (low.tolist(), high.tolist()) == ([0, 0], [0, 0])
