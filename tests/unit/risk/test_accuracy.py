"""Is the accuracy what it should be? Exact tests against brute force, and what a wrong order of labels looks like."""

from itertools import permutations
from math import comb

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.accuracy import (
    LEVEL,
    best_shift,
    chance_accuracy,
    is_below,
    is_far_below,
    is_near_chance,
    paired_p_value,
    probability_at_least,
    probability_at_most,
    relabelling,
)


def brute(counts: range, n: int, p: float) -> float:
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in counts)


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.325, 0.9, 1.0])
def test_tails_are_those_of_the_binomial_law(n: int, p: float) -> None:
    for k in range(n + 1):
        assert probability_at_most(k, n, p) == pytest.approx(brute(range(k + 1), n, p), abs=1e-12)
        assert probability_at_least(k, n, p) == pytest.approx(brute(range(k, n + 1), n, p), abs=1e-12)


def test_chance_is_the_mean_accuracy_over_all_orders_of_the_labels() -> None:
    predicted, labels = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 1, 2])
    orders = [np.mean(predicted == labels[list(order)]) for order in permutations(range(5))]
    assert chance_accuracy(predicted, labels, 3) == pytest.approx(np.mean(orders))
    assert chance_accuracy(np.zeros(9, np.int64), np.r_[np.zeros(8, np.int64), 1], 2) == pytest.approx(8 / 9)
    assert chance_accuracy(np.array([3, 3, 1]), np.array([3, 3, 3]), 5) == 0.2, "one label says nothing of chance"
    with pytest.raises(RiskError, match="give one prediction for each label"):
        chance_accuracy(np.array([], np.int64), np.array([], np.int64), 2)


def test_twenty_samples_of_a_fair_model_do_not_stop_a_run_and_fifty_of_a_guessing_one_do() -> None:
    """How often each is stopped, exactly: the sum over what may be seen."""

    def stopped(n: int, accuracy: float, chance: float = 0.1) -> float:
        return sum(brute(range(k, k + 1), n, accuracy) for k in range(n + 1) if is_near_chance(k, n, chance))

    assert stopped(20, 0.6) < 1e-4
    assert stopped(200, 0.28) < 1e-4
    assert max(stopped(n, 0.325) for n in (10, 20, 50, 200)) <= LEVEL
    assert stopped(10, 0.1) == 0, "too few samples say nothing"
    assert stopped(50, 0.1) > 0.6
    assert stopped(200, 0.1) > 0.98
    assert stopped(100, 0.5, chance=0.5) > 0.5
    assert stopped(100, 0.9, chance=0.5) < 1e-9


def test_far_below_is_significant_and_large() -> None:
    assert is_far_below(162, 200, 0.9)
    assert not is_below(172, 200, 0.9), "86 % of 200 may be luck"
    assert is_below(8800, 10_000, 0.9)
    assert not is_far_below(8800, 10_000, 0.9), "two points are a doubt"
    assert not is_below(17, 20, 0.95)
    assert is_far_below(0, 5, 0.9)
    assert not is_far_below(0, 1, 0.9)


def test_pairs_are_compared_by_those_that_changed() -> None:
    before, after = np.array([True, False, False, False, True]), np.array([True, True, True, True, False])
    assert paired_p_value(before, after) == pytest.approx(brute(range(3, 5), 4, 0.5))
    assert paired_p_value(before, before) == 1.0


def test_an_exchange_of_labels_is_noticed_by_samples_that_did_not_choose_it() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 200)
    exchange = rng.permutation(10)
    before, after = relabelling(exchange[labels], labels)
    assert len(after) == 100
    assert before.mean() < 0.4
    assert after.all()
    noise = rng.integers(0, 10, 200)
    assert relabelling(noise, labels)[1].mean() < 0.3, "a free choice on all samples would explain more"
    assert best_shift(labels + 1, labels) == (1, 1.0)
    assert best_shift(labels - 1, labels) == (-1, 1.0)
