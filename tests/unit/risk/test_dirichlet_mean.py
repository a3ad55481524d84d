"""Means with random weights against closed forms: Beta's distribution, and exact sums for different values."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from scipy.stats import beta

from advrisk.risk.dirichlet_mean import Mixture


def exact_cdf(values: list[Fraction], t: Fraction) -> float:
    """P(T <= t) for weights of Dirichlet(1, ..., 1) and different values, by divided differences."""
    n = len(values)
    terms = [(t - one) ** (n - 1) / prod(other - one for other in values if other != one) for one in values if one <= t]
    return float(abs(sum(terms)))


@pytest.mark.parametrize("n", [8, 20, 40])
def test_different_values_against_the_exact_sum(n: int) -> None:
    """A limit that leaves 2.5 % beyond it may leave from 2.4 % to 2.6 %; in the middle 0.3 % are allowed."""
    values = [Fraction(place**2, (n - 1) ** 2) for place in range(n)]
    mixture = Mixture(np.array([[float(value) for value in values]]), np.ones(n))
    for t in (Fraction(1, 8), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)):
        assert mixture.cdf(float(t)) == pytest.approx(exact_cdf(values, t), abs=3e-3)
    for p in (0.005, 0.025, 0.975, 0.995):
        assert exact_cdf(values, Fraction(mixture.quantile(p))) == pytest.approx(p, abs=1e-3)


@pytest.mark.parametrize(("ones", "zeros"), [(1, 20), (2, 20), (3, 100), (50, 51)])
@pytest.mark.parametrize("p", [0.025, 0.5, 0.975])
def test_two_values_have_betas_quantiles(ones: int, zeros: int, p: float) -> None:
    expected = beta.ppf(p, ones, zeros)
    assert Mixture(np.array([[1.0, 0.0]]), np.array([ones, zeros], float)).quantile(p) == pytest.approx(expected)
    # without the shortcut: a third value that has next to no weight
    near = Mixture(np.array([[1.0, 0.0, 0.5]]), np.array([ones, zeros, 1e-9])).quantile(p)
    assert beta.cdf(near, ones, zeros) == pytest.approx(p, abs=2e-3)
    assert near == pytest.approx(expected, abs=1e-3)


def test_a_mixture_of_many_rows_is_the_mean_of_their_distributions() -> None:
    ones = np.arange(1, 1201)
    values = ones[:, None] / 1201 * np.array([1.0, 0.0])  # T is ones / 1201 times Beta(5, 3)
    mixture = Mixture(values, np.array([5.0, 3.0]))
    for t in (0.1, 0.4, 0.8):
        assert mixture.cdf(t) == pytest.approx(beta.cdf(t * 1201 / ones, 5, 3).mean(), abs=3e-3)
    assert mixture.cdf(mixture.quantile(0.025)) == pytest.approx(0.025, abs=1e-4)
    assert (mixture.cdf(-1.0), mixture.cdf(2.0)) == (0.0, 1.0)
    assert Mixture(np.full((3, 2), 0.4), np.ones(2)).quantile(0.3) == 0.4
