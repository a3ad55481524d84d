"""Limits of the mean of a bounded quantity: against Clopper and Pearson, draws, and known truths."""

import numpy as np
import pytest
from scipy import stats

from advrisk.risk.bounded_mean import exceeds_zero, mean_limits


@pytest.mark.parametrize(("hits", "n"), [(0, 64), (3, 64), (32, 64), (5, 500), (30, 30)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.995])
def test_of_zeros_and_ones_they_are_clopper_and_pearsons(hits: int, n: int, level: float) -> None:
    """The tail beyond each limit, by the beta law, is within a hundredth of what it may be."""
    values = np.repeat([1.0, 0.0], [hits, n - hits])
    low, high = mean_limits(values, 0.0, 1.0, level)
    tail = (1 - level) / 2
    assert hits == n or stats.beta.sf(high, hits + 1, n - hits) == pytest.approx(tail, rel=0.02)
    assert hits == 0 or stats.beta.cdf(low, hits, n - hits + 1) == pytest.approx(tail, rel=0.02)
    assert low <= hits / n <= high


@pytest.mark.parametrize("seed", range(4))
def test_of_skewed_values_they_are_quantiles_of_weighted_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(60) < 0.1, rng.uniform(0.5, 1, 60), rng.normal(-0.05, 0.02, 60))
    weights = rng.standard_exponential((200_000, 61))
    weights /= weights.sum(axis=1, keepdims=True)
    low, high = mean_limits(values, -1.0, 1.0, 0.98)
    drawn = weights[:, :-1] @ values
    assert np.mean(drawn + weights[:, -1] > high) == pytest.approx(0.01, abs=0.001)
    assert np.mean(drawn - weights[:, -1] < low) == pytest.approx(0.01, abs=0.001)


def test_the_tail_of_a_weighted_sum() -> None:
    """Two exponentials: P(E1 > a E2) = 1 / (1 + a)."""
    for a in (0.2, 1.0, 3.0):
        assert exceeds_zero(np.array([1.0, -a])) == pytest.approx(1 / (1 + a), abs=0.03)
    assert exceeds_zero(np.ones(3)) == 1.0
    assert exceeds_zero(np.zeros(3)) == exceeds_zero(-np.ones(3)) == 0.0
    middle = np.concatenate([np.linspace(-1, 1, 41), [1e-6]])
    assert exceeds_zero(middle) == pytest.approx(0.5, abs=1e-3)


def test_without_any_spread_a_sample_not_seen_makes_the_width() -> None:
    low, high = mean_limits(np.full(64, 0.2), -1.0, 1.0, 0.99)
    unseen = 1 - 0.005 ** (1 / 64)  # the probability of a kind of sample that 64 draws do not show
    assert high == pytest.approx(0.2 + 0.8 * unseen, rel=0.01)
    assert low == pytest.approx(0.2 - 1.2 * unseen, rel=0.02)
