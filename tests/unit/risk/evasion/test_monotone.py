"""Isotonic regression against scikit-learn's, and bounds counted by hand."""

import numpy as np
import pytest
from scipy.stats import beta

from advrisk.risk.evasion import MonotoneCurve, fit_monotone
from advrisk.risk.evasion.monotone import falling


@pytest.mark.parametrize("seed", range(5))
def test_it_is_scikit_learns_isotonic_regression(seed: int) -> None:
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, 50) / 4
    undetected = rng.random(50) < np.exp(-sizes)
    theirs = IsotonicRegression(increasing=False).fit(sizes, undetected)
    at = np.linspace(sizes.min(), sizes.max(), 77)
    np.testing.assert_allclose(fit_monotone(sizes, undetected)(at), theirs.predict(at), atol=1e-12)


def test_violators_are_pooled_by_weight() -> None:
    assert falling(np.array([0.5, 0.8, 0.2]), np.array([1.0, 2.0, 5.0])) == pytest.approx([0.7, 0.7, 0.2])


def test_between_and_beyond_the_sizes_there_are_bounds() -> None:
    fit = fit_monotone([1, 1, 2, 2, 2], [1, 1, 1, 0, 0])
    assert fit([0.5, 1, 1.5, 2, 9, np.inf]) == pytest.approx([1, 1, 2 / 3, 1 / 3, 1 / 3, 0])
    low, high = fit.bounds([0.5, 1, 1.5, 2, 9, np.inf])
    assert low == pytest.approx([1, 1, 1 / 3, 1 / 3, 0, 0])
    assert high == pytest.approx([1, 1, 1, 1 / 3, 1 / 3, 0])


def test_below_the_first_size_the_upper_bound_is_one() -> None:
    fit = fit_monotone([1, 1, 2], [1, 0, 0])
    assert [float(end) for end in fit.bounds(0.1)] == [0.5, 1.0]


def test_bounds_of_draws_have_clopper_and_pearsons_quantiles() -> None:
    # 9 of 10 undetected at size 1, 2 of 10 at size 2: far enough apart that pooling hardly ever happens
    sizes, undetected = np.repeat([1.0, 2.0], 10), [1] * 9 + [0] + [1] * 2 + [0] * 8
    curves = fit_monotone(sizes, undetected).draws(20_000, np.random.default_rng(0))
    bounds = np.array([curve.bounds([1.0, 2.0]) for curve in curves])  # (draws, low or high, sizes)
    for place, hits in enumerate((9, 2)):
        assert np.quantile(bounds[:, 0, place], 0.025) == pytest.approx(beta.ppf(0.025, hits, 11 - hits), abs=0.01)
        assert np.quantile(bounds[:, 1, place], 0.975) == pytest.approx(beta.ppf(0.975, hits + 1, 10 - hits), abs=0.01)


def test_draws_fall_and_keep_their_bounds_in_order() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.uniform(0, 2, 60)
    fit = fit_monotone(sizes, rng.random(60) < np.exp(-sizes))
    at = np.append(np.linspace(0, 3, 50), np.inf)
    for curve in fit.draws(100, rng):
        low, high = curve.bounds(at)
        assert (low <= curve(at) + 1e-12).all()
        assert (curve(at) <= high + 1e-12).all()
        assert max(np.diff(values).max() for values in (low, curve(at), high)) <= 1e-12


def test_blocks_of_different_sizes_have_enough_answers() -> None:
    sizes = np.arange(1.0, 51.0)
    knots, total, hits = fit_monotone(sizes, sizes < 20)._blocks
    assert total.sum() == 50
    assert hits.sum() == 19
    assert total.min() >= np.sqrt(50)
    assert knots[0] == sizes[: int(total[0])].mean()


def test_a_curve_keeps_the_shape_of_its_sizes() -> None:
    curve = MonotoneCurve(np.array([1.0, 2.0]), np.array([0.8, 0.1]), np.array([0.9, 0.3]))
    assert curve(np.ones((2, 3))).shape == (2, 3)
    assert curve(1.5) == pytest.approx((0.85 + 0.2) / 2)
