"""Plans against brute force over every n, and against simulated sets."""

import numpy as np
import pytest
from scipy.stats import binom

from advrisk.core.errors import RiskError
from advrisk.risk.certificate import betting_p_values, p_value, power, samples_to_certify, smallest_n
from advrisk.risk.certificate.p_values import METHODS


def brute_power(n: int, risk: float, alpha: float, zeta: float, method: str) -> float:
    k = np.arange(n + 1)
    return float(binom.pmf(k, n, risk)[p_value(k, n, alpha, method=method) <= zeta].sum())  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("risk", [0.0, 0.03, 0.1, 0.5, 1.0])
def test_power_is_the_sum_over_all_counts_that_certify(method: str, risk: float) -> None:
    sizes = np.array([1, 28, 29, 100, 333])
    found = power(sizes, risk, 0.1, 0.05, method=method)  # type: ignore[arg-type]
    expected = [brute_power(int(n), risk, 0.1, 0.05, method) for n in sizes]
    assert found == pytest.approx(expected, abs=1e-12)
    assert isinstance(power(100, risk, 0.1, 0.05), float)


def test_power_against_simulated_sets() -> None:
    failures = np.random.default_rng(0).binomial(1000, 0.07, 20_000)
    share = float((p_value(failures, 1000, 0.1) <= 0.05).mean())
    assert power(1000, 0.07, 0.1, 0.05) == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("risk", "alpha", "zeta", "wanted"),
    [
        (0.05, 0.1, 0.05, 0.9),
        (0.0, 0.1, 0.05, 0.9),
        (0.02, 0.2, 0.01, 0.99),
        (0.3, 0.5, 0.1, 0.5),
        (0.01, 0.05, 0.2, 0.8),
    ],
)
def test_from_there_on_the_power_never_falls_below(
    method: str, risk: float, alpha: float, zeta: float, wanted: float
) -> None:
    n = samples_to_certify(risk, alpha, zeta, power=wanted, method=method)  # type: ignore[arg-type]
    every = power(np.arange(1, 3 * n + 200), risk, alpha, zeta, method=method)  # type: ignore[arg-type]
    short = np.flatnonzero(every < wanted) + 1
    assert n == (short[-1] + 1 if short.size else 1)


def test_known_plans() -> None:
    assert samples_to_certify(0.05, 0.1, 0.05) == 263
    assert samples_to_certify(0.05, 0.1, 0.05) < samples_to_certify(0.05, 0.1, 0.05, method="hoeffding-bentkus")
    large = samples_to_certify(0.099, 0.1, 0.05)
    assert power(large, 0.099, 0.1, 0.05) >= 0.9 > power(large - 2000, 0.099, 0.1, 0.05)


@pytest.mark.parametrize("zeta", [0.05, 0.5, 0.001])
@pytest.mark.parametrize("alpha", [0.001, 0.1, 0.5, 0.99])
def test_the_fewest_samples_that_can_certify(alpha: float, zeta: float) -> None:
    for method in METHODS:
        n = smallest_n(alpha, zeta, method=method)
        assert p_value(0, n, alpha, method=method) <= zeta
        assert n == 1 or p_value(0, n - 1, alpha, method=method) > zeta
    n = smallest_n(alpha, zeta, method="betting")
    p = betting_p_values(np.zeros(n + 1), alpha)
    assert p[n - 1] <= zeta
    assert n == 1 or p[n - 2] > zeta


def test_two_ways_out_of_reach() -> None:
    assert smallest_n(0.1, 0.05) == 29
    with pytest.raises(RiskError, match="no number of samples helps"):
        samples_to_certify(0.1, 0.1, 0.05)
    with pytest.raises(RiskError, match="more than 10,000,000"):
        samples_to_certify(0.0999, 0.1, 0.05)


def test_mistakes_are_refused() -> None:
    with pytest.raises(RiskError, match="between 0 and 1"):
        power(10, 1.5, 0.1, 0.05)
    with pytest.raises(RiskError, match="number from 0 to 1"):
        power(10, "low", 0.1, 0.05)
    with pytest.raises(RiskError, match="power must lie"):
        samples_to_certify(0.05, 0.1, 0.05, power=1.0)
    with pytest.raises(RiskError, match="zeta must lie"):
        samples_to_certify(0.05, 0.1, 0.0)
    with pytest.raises(RiskError, match="unknown method"):
        smallest_n(0.1, 0.05, method="guess")  # type: ignore[arg-type]
    with pytest.raises(RiskError, match="unknown method"):
        samples_to_certify(0.05, 0.1, 0.05, method="guess")  # type: ignore[arg-type]
