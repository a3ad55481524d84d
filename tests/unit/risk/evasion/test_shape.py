"""Whether answers have the shape that a fit assumes."""

from typing import Any

import numpy as np
import pytest

from advrisk.risk.evasion import (
    EvasionCurve,
    fit_bayesian,
    fit_logistic,
    fit_monotone,
    shape_test,
    threshold,
)
from advrisk.risk.evasion.logistic import log_likelihood, maximum
from advrisk.risk.evasion.shape import _gains

GRID = np.repeat(np.geomspace(0.2, 5, 30), 10)  # ten answers at each of thirty sizes


def answers(curve: Any, sizes: Any = GRID) -> Any:
    """As many undetected at each size as the curve says: no luck in it."""
    place = np.arange(sizes.size) % 10
    return place < np.round(10 * curve(sizes))


def right(sizes: Any) -> Any:
    return 1 / (1 + np.exp(-(3 - 3 * sizes)))


def plateaus(sizes: Any) -> Any:
    return np.where(sizes < 0.4, 1.0, np.where(sizes < 2, 0.6, 0.1))


def p_of(curve: EvasionCurve) -> float:
    found = shape_test(curve)
    assert found is not None
    return found.p_value


def test_the_right_shape_is_not_doubted_and_plateaus_are() -> None:
    assert p_of(fit_logistic(GRID, answers(right))) > 0.2
    assert p_of(fit_logistic(GRID, answers(plateaus))) <= 0.005
    assert p_of(fit_bayesian(GRID, answers(plateaus))) <= 0.005
    assert p_of(fit_bayesian(GRID, answers(lambda sizes: 1 / (1 + sizes**3)))) > 0.2


def test_the_same_answers_in_any_order_have_the_same_p_value() -> None:
    mixed = np.random.default_rng(0).permutation(GRID.size)
    one, two = (fit_logistic(GRID[order], answers(plateaus)[order]) for order in (np.arange(GRID.size), mixed))
    assert shape_test(one) == shape_test(two) == shape_test(one)


def test_what_assumes_no_shape_is_not_tested() -> None:
    assert shape_test(fit_monotone(GRID, answers(plateaus))) is None
    assert shape_test(threshold(1.0)) is None
    assert shape_test(fit_bayesian([], [], plausible=(0.1, 10.0), few=True)) is None


def test_the_gain_is_that_of_isotonic_regression_over_the_likeliest_curve() -> None:
    """By Newton's maximum of the logistic likelihood, and scikit-learn's isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    sizes = np.unique(GRID)
    undetected = np.random.default_rng(3).random(GRID.size) < right(GRID)
    hits, total = undetected.reshape(30, 10).sum(axis=1).astype(float), np.full(30, 10.0)
    free = IsotonicRegression(increasing=False).fit_transform(sizes, hits / total, sample_weight=total)
    z = (sizes - sizes.mean()) / sizes.std()
    best = maximum(z, total, hits[None])
    own = float(log_likelihood(best, z, total, hits[None])[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.nan_to_num(hits * np.log(free)) + np.nan_to_num((total - hits) * np.log(1 - free))
    found = shape_test(fit_logistic(GRID, undetected))
    assert found is not None
    assert found.statistic == pytest.approx(parts.sum() - own, abs=0.01)
    assert found.n == 300


def test_in_a_forced_choice_half_of_what_is_unnoticed_is_named_rightly() -> None:
    """No curve of wrong answers may exceed a half: three of four wrong ones count as a half."""
    (gain,) = _gains(np.array([[0.5, 0.25]]), np.array([[3.0, 1.0]]), np.array([4.0, 4.0]), 0.5)
    assert gain == pytest.approx(0.0, abs=1e-9)
    wrong = np.random.default_rng(4).random(GRID.size) < 1 / (1 + GRID**3) / 2
    assert p_of(fit_bayesian(GRID, wrong, forced_choice=True)) > 0.05


def test_labellers_who_differ_are_not_taken_for_another_shape() -> None:
    """Two with thresholds of 0.5 and 2: their answers together have a plateau, those of each do not."""
    who = np.arange(GRID.size) % 10 < 5
    own = GRID / np.where(who, 0.5, 2.0)
    undetected = np.random.default_rng(5).random(GRID.size) < 1 / (1 + own**6)
    together = fit_bayesian(GRID, undetected)
    apart = fit_bayesian(GRID, undetected, labellers=np.where(who, "ann", "bob").tolist())
    assert p_of(together) < 0.05 < p_of(apart)


def test_many_sizes_are_put_together() -> None:
    """Answers as evenly spread as a golden section makes them."""
    sizes = np.geomspace(0.2, 5, 3000)
    even = np.arange(3000) * 0.6180339887498949 % 1
    assert p_of(fit_logistic(sizes, even < right(sizes))) > 0.05
    assert p_of(fit_logistic(sizes, even < plateaus(sizes))) <= 0.005
