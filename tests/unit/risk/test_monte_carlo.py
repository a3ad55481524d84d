"""Thresholds and answers of Algorithm 1, on arrays."""

from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.monte_carlo import monte_carlo_from_answers, threshold_at, undetected_successes
from advrisk.risk.proportion import proportion


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_threshold_for_a_rate_is_the_smallest_that_keeps_it() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        scores = draw.integers(0, 8, draw.integers(1, 30)).astype(float)  # many ties
        rate = float(draw.choice([0.0, 0.05, 0.1, 0.29, 0.5, 0.9]))
        found = threshold_at(scores, rate)
        fitting = [limit for limit in np.arange(-1, 9, 0.5) if (scores > limit).mean() <= rate + 1e-12]
        assert found == min(fitting)


def test_the_rate_is_met_exactly_where_rounding_would_miss_it() -> None:
    assert (np.arange(100) > threshold_at(np.arange(100), 0.29)).sum() == 29


def test_answers_of_people() -> None:
    zeros_and_ones = monte_carlo_from_answers([0, 1, 1, 0, 0], level=0.9, rng=rng())
    assert zeros_and_ones == proportion(2, 5, level=0.9)
    shares = monte_carlo_from_answers([0, 0.5, 1.0, 0.25, 0], rng=rng())
    assert (shares.value, shares.n, shares.method) == (pytest.approx(0.35), 5, "Gaffke")
    assert 0 < shares.low < 0.35 < shares.high < 1
    assert monte_carlo_from_answers([0.0] * 10, rng=rng()).high > 0
    assert monte_carlo_from_answers([0.5] * 10, rng=rng()).value == 0.5


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([0, 1.5], "sample 1: found 1.5; undetected is a share between 0 and 1"),
        ([float("nan")], "sample 0: found nan"),
        ([], "there is no distance|at least one sample"),
        (["yes"], "one value in"),
    ],
)
def test_answers_that_are_none(answers: list[Any], words: str) -> None:
    with pytest.raises(RiskError, match=words):
        monte_carlo_from_answers(answers, rng=rng())


@pytest.mark.parametrize(
    ("sizes", "scores", "words"),
    [([0.1, 0.2], [1.0], "2 sizes and 1 scores"), ([0.1], [float("nan")], "a success without a score")],
)
def test_arrays_that_do_not_fit(sizes: list[float], scores: list[float], words: str) -> None:
    with pytest.raises(RiskError, match=words):
        undetected_successes(sizes, scores, 0.5)


def test_where_nothing_succeeded_no_score_is_needed() -> None:
    assert undetected_successes([np.inf, 0.1], [np.nan, 0.2], 0.2).tolist() == [False, True]
