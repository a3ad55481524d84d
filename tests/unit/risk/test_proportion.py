"""Clopper–Pearson against scipy's own, and against its definition."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom, binomtest

from advrisk.core.errors import RiskError
from advrisk.risk.proportion import mean_estimate, proportion


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (997, 1000)])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_equals_scipy(hits: int, n: int, level: float) -> None:
    theirs = binomtest(hits, n).proportion_ci(level, method="exact")
    ours = proportion(hits, n, level=level)
    assert (ours.value, ours.n, ours.level) == (hits / n, n, level)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_ends_leave_half_of_the_error_on_each_side() -> None:
    ours = proportion(7, 40)
    assert binom.sf(6, 40, ours.low) == pytest.approx(0.025)
    assert binom.cdf(7, 40, ours.high) == pytest.approx(0.025)


@pytest.mark.parametrize(("hits", "n"), [(1, 0), (-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(hits: int, n: int) -> None:
    with pytest.raises(RiskError, match=f"found {hits} of {n}"):
        proportion(hits, n)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_students(level: float) -> None:
    values = np.random.default_rng(0).gamma(2.0, size=17)
    found = mean_estimate(values.tolist(), level=level)
    low, high = stats.t.interval(level, 16, values.mean(), stats.sem(values))
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert (found.level, found.n) == (level, 17)


def test_one_value_says_nothing_of_how_far_it_may_be_off() -> None:
    found = mean_estimate([0.5])
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.0, math.inf, 1)
    assert mean_estimate([-0.5]).low == -math.inf


def test_what_is_never_negative_has_no_mean_below_0() -> None:
    values = [0.0, 0.1, 0.0, 1.2]
    found = mean_estimate(values)
    assert found.low == 0 < found.value
    assert found.high == pytest.approx(stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))[1])
    assert mean_estimate([-0.1, 0.1, 0.0, 1.2]).low < 0


def test_weights_count_and_samples_without_any_do_not() -> None:
    values = [0.2, 0.5, 0.9, 7.0]
    found = mean_estimate(values, [2.0, 1.0, 1.0, 0.0])
    assert found.value == pytest.approx((0.4 + 0.5 + 0.9) / 4)
    assert found.n == 3
    share, n = np.array([0.5, 0.25, 0.25]), 1 / 0.375
    error = np.sqrt(np.square(share * (np.array(values[:3]) - found.value)).sum() * n / (n - 1))
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, n - 1) * error)
    alike = mean_estimate(values, [3.0] * 4)
    assert (alike.value, alike.low, alike.high) == pytest.approx(
        [mean_estimate(values).value, mean_estimate(values).low, mean_estimate(values).high]
    )
    for weights in ([1.0], [0.0] * 4, [1.0, 1.0, 1.0, math.nan]):
        with pytest.raises(RiskError, match="a mean needs a weight for each of 4 values"):
            mean_estimate(values, weights)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_no_data_and_no_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(RiskError, match="a mean needs finite values"):
        mean_estimate(values)
