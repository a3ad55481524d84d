"""Means of measures, with their intervals."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.risk.measures import mean_estimate, read_measures


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_students(level: float) -> None:
    values = np.random.default_rng(0).gamma(2.0, size=17)
    found = mean_estimate(values.tolist(), level=level)
    low, high = stats.t.interval(level, 16, values.mean(), stats.sem(values))
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert (found.level, found.n) == (level, 17)


def test_one_value_says_nothing_of_how_far_it_may_be_off() -> None:
    found = mean_estimate([0.5])
    assert (found.value, found.low, found.high, found.n) == (0.5, -math.inf, math.inf, 1)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_no_data_and_no_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(RiskError, match="a mean needs finite values"):
        mean_estimate(values)


def test_nothing_measured_is_nothing_read(tmp_path: Path) -> None:
    assert read_measures(Ledger.open(tmp_path, create=True)) == {}
