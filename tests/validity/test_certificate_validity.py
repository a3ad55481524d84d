"""Certificates at a risk of exactly alpha, where they must be rare, and below it: see `bench.certificate_validity`."""

import numpy as np
import pytest
from scipy.stats import binom

from advrisk.risk.certificate import power
from advrisk.risk.certificate.p_values import METHODS
from bench.certificate_validity import (
    ALPHA,
    STRATEGIES,
    ZETA,
    betting_power,
    many_claims,
    once,
    peeking,
    searching,
)


def most(sets: int, share: float = ZETA) -> float:
    """A share that sets of this rate exceed once in a thousand such tests."""
    return float(binom.isf(0.001, sets, share)) / sets


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("method", METHODS)
def test_a_certificate_at_a_risk_of_alpha_is_rare_by_exact_sums(method: str, n: int) -> None:
    assert power(n, ALPHA, ALPHA, ZETA, method=method) <= ZETA  # type: ignore[arg-type]


def test_peeking_breaks_what_is_looked_at_once_and_not_the_bets() -> None:
    sets = 1000
    assert peeking("exact", 100, sets, seed=1) > most(sets) + 0.02
    assert peeking("betting", 100, sets, seed=1) <= most(sets)


def test_searches_and_several_claims_in_few_sets() -> None:
    sets = 300
    found = list(searching(sets, seed=4).values())
    assert found[0] > most(sets)
    assert found[4] > most(sets)
    assert max(found[3], found[5]) <= most(sets)
    claims = list(many_claims(sets, seed=5).values())
    assert max(claims[0], claims[2], claims[4]) <= most(sets)
    assert min(claims[1], claims[3]) > most(sets)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("method", [*METHODS, "betting"])
def test_a_certificate_at_a_risk_of_alpha_is_rare(method: str, n: int) -> None:
    assert once(method, n, 20_000, seed=n) <= most(20_000)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1000])
def test_only_bets_may_be_looked_at_after_every_sample(n: int) -> None:
    sets = 10_000
    assert peeking("betting", n, sets, seed=2) <= most(sets)
    for method in METHODS:
        assert peeking(method, n, sets, seed=2) > most(sets)


@pytest.mark.slow
def test_searching_and_testing_on_the_same_samples_breaks_it_and_splitting_keeps_it() -> None:
    sets = 10_000
    found = list(searching(sets, seed=6).values())
    assert min(found[0], found[1], found[4]) > 2 * ZETA, "the mean of p, and the safest of several"
    assert max(found[2], found[3], found[5]) <= most(sets)


@pytest.mark.slow
def test_several_claims_at_once() -> None:
    sets = 10_000
    claims = list(many_claims(sets, seed=7).values())
    assert max(claims[0], claims[2], claims[4]) <= most(sets)
    assert min(claims[1], claims[3]) > 2 * ZETA


@pytest.mark.slow
def test_bets_have_more_power_than_those_that_adapt_to_the_mean() -> None:
    for risk in (0.05, 0.07, 0.08):
        found = {name: betting_power(bet, 1000, risk, 2000, seed=8) for name, bet in STRATEGIES.items()}
        assert found["betting"] >= found["betting, aGRAPA"] + 0.1
        assert found["betting"] >= found["betting, equal parts"] - 0.02
        assert found["betting"] <= float(power(1000, risk, ALPHA, ZETA)) + 0.01
        assert np.isfinite(list(found.values())).all()
