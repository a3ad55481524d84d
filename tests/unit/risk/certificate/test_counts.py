"""The chance of even groups, against all draws."""

import itertools

import numpy as np
import pytest

from advrisk.risk.certificate.counts import probability_of_even_counts


@pytest.mark.parametrize("counts", [(2, 2), (3, 2), (2, 2, 2), (3, 2, 2), (1, 1, 1, 1)])
def test_the_chance_of_even_counts_is_that_of_all_draws(counts: tuple[int, ...]) -> None:
    n, k = sum(counts), len(counts)
    draws = list(itertools.product(range(k), repeat=n))
    even = sum(np.ptp([draw.count(one) for one in range(k)]) <= 1 for draw in draws)
    assert probability_of_even_counts(counts) == pytest.approx(even / len(draws), rel=1e-12)
