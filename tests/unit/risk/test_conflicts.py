"""What contradicts an order by relative damage, as numbers."""

import numpy as np
import pytest

from advrisk.risk.conflicts import Order, Stated, TieValues

N, EPS = 100, 0.1


def order(*, sizes: tuple[float, ...] = (EPS,), low: float = 0.4) -> Order:
    """`noisy` is broken everywhere at 0.09, `plain` in 70 % of samples at 0.08: the order is wrong at 0.1."""
    distances = {"noisy": np.full(N, 0.09), "plain": np.where(np.arange(N) < 70, 0.08, np.inf)}
    tied = {"noisy": TieValues(0.4, low, low), "plain": TieValues(0.6, 0.6, 0.6)}
    return Order("noisy", "plain", tied, distances, Stated(sizes=sizes, fixed_eps=True), 0.95)


def test_a_conflict_holds_the_numbers_that_disagree() -> None:
    (opposed,) = order().conflicts()
    assert (opposed.kind, opposed.lower, opposed.higher, opposed.eps) == ("opposed", "noisy", "plain", EPS)
    assert opposed.shares == pytest.approx((0.0, 0.3))
    assert [values.greater for values in opposed.tied] == [0.4, 0.6]


def test_ties_come_first_and_sizes_that_are_missing_back_nothing() -> None:
    assert [one.kind for one in order(low=0.7).conflicts()] == ["ties", "opposed"]
    assert [one.kind for one in order(sizes=()).conflicts()] == ["unmeasured"]
