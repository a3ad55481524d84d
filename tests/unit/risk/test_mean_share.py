"""Means of values between 0 and 1: shares of samples, and of queries."""

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.mean_share import are_flags, difference_at_least, mean_difference, mean_share
from advrisk.risk.paired_share import at_least, share_difference
from advrisk.risk.proportion import proportion

FLAGS = np.arange(40) < 9
OTHER = np.roll(FLAGS, 4)


def test_flags_are_a_proportion() -> None:
    assert mean_share(FLAGS) == proportion(9, 40)
    worst = mean_share(FLAGS, unknown=3)
    assert (worst.value, worst.n) == (9 / 40, 40)
    assert (worst.low, worst.high) == (proportion(9, 43).low, proportion(12, 43).high)
    assert mean_difference(FLAGS, OTHER, unknown=2) == share_difference(4, 4, 40, unknown=2)
    assert difference_at_least(FLAGS, OTHER, 0.1, unknown=2) == at_least(6, 4, 42, 0.1)


def test_shares_near_flags_have_nearly_their_interval() -> None:
    """One and the same formula: a value that is hardly off 0 or 1 changes hardly anything."""
    almost = np.where(FLAGS, 1 - 1e-7, 1e-7)
    assert not are_flags(almost)
    for unknown in (0, 3):
        one, other = mean_share(almost, unknown=unknown), mean_share(FLAGS, unknown=unknown)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=2e-3)
        one = mean_difference(almost, OTHER.astype(float), unknown=unknown)
        other = mean_difference(FLAGS, OTHER, unknown=unknown)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=2e-3)
        found = difference_at_least(almost, OTHER.astype(float), 0.1, unknown=unknown)
        assert found == pytest.approx(difference_at_least(FLAGS, OTHER, 0.1, unknown=unknown), abs=2e-3)


def test_draws_that_agree_less_make_a_narrower_interval_than_flags_of_the_same_mean() -> None:
    even = np.full(40, 9 / 40) + np.where(np.arange(40) % 2, 0.01, -0.01)
    one, other = mean_share(even), mean_share(FLAGS)
    assert one.value == pytest.approx(other.value)
    assert other.low < one.low < one.value < one.high < other.high
    assert mean_share(even, unknown=4).high > one.high
    assert mean_share(even, unknown=4).low < one.low


@pytest.mark.parametrize("values", [[], [0.5, 1.1], [-0.1], [np.nan, 0.0], [[0.5]]])
def test_what_is_no_share_is_refused(values: list[float]) -> None:
    with pytest.raises(RiskError, match="a share is the mean of values from 0 to 1"):
        mean_share(values)


@pytest.mark.parametrize("draws", [1, 11])
def test_a_p_value_decides_as_the_interval_does(draws: int) -> None:
    rng = np.random.default_rng(3)
    decided = []
    for n in rng.integers(1, 300, 150):
        one, other = (rng.binomial(draws, share, n) / draws for share in rng.random(2))
        below = mean_difference(one, other, level=0.9).high < 0
        assert (difference_at_least(one, other, 0.0) < 0.05) == below
        decided.append(below)
    assert 0.2 < np.mean(decided) < 0.8
