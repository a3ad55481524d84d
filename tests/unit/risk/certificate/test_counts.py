"""The chance of even groups, against all draws."""

import itertools

import numpy as np
import pytest

from advrisk.risk.certificate.counts import as_even_as_can_be


@pytest.mark.parametrize("counts", [(2, 2), (3, 2), (2, 2, 2), (3, 2, 2), (1, 1, 1, 1)])
def test_the_chance_of_even_counts_is_that_of_all_draws(counts: tuple[int, ...]) -> None:
    n, k = sum(counts), len(counts)
    draws = list(itertools.product(range(k), repeat=n))
    even = sum(np.ptp([draw.count(one) for one in range(k)]) <= 1 for draw in draws)
    assert as_even_as_can_be(counts) == pytest.approx(even / len(draws), rel=1e-12)
