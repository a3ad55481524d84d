"""Certificates at a risk of exactly alpha, where they must be rare, and below it: see `bench.certificate_validity`."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from advrisk.risk.certificate import betting_p_values, p_value, power
from advrisk.risk.certificate.betting import log_wealth
from advrisk.risk.certificate.p_values import METHODS, Method
from advrisk.study import CertificateSpec
from bench import search
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

VALID = (
    "largest eps of 5 models, shared zeta",
    "largest eps of one model, in order",
    "list, union and wrong, on one certificate",
)
BROKEN = ("largest eps of 5 models, zeta each", "largest eps of one model, the largest with p <= zeta")
DOCS = Path(__file__).parents[2] / "docs"
COMMITTED = (DOCS / "certificate-method.md").read_text(encoding="utf-8")


def most(sets: int, share: float = ZETA) -> float:
    """A share that sets of this rate exceed once in a thousand such tests."""
    return float(binom.isf(0.001, sets, share)) / sets


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("risk", [ALPHA, 0.12])
def test_a_certificate_at_a_risk_of_alpha_is_rare_by_scipys_sums(method: Method, n: int, risk: float) -> None:
    """The probability of all counts that are certified, each as scipy has it."""
    certified = p_value(np.arange(n + 1), n, ALPHA, method=method) <= ZETA
    assert certified.any()
    assert not certified[-1]
    assert float(binom.pmf(np.arange(n + 1), n, risk)[certified].sum()) <= ZETA


def test_a_look_at_the_end_sees_what_any_look_saw() -> None:
    """The p of bets that the program gives, held against the wealth that `peeking` counts."""
    losses = np.random.default_rng(3).random((200, 100)) < ALPHA
    seen = np.mean([betting_p_values(one.astype(float), ALPHA)[-1] <= ZETA for one in losses])
    assert seen == np.mean(log_wealth(losses.astype(float), ALPHA).max(axis=1) >= -np.log(ZETA))
    assert not [line for line in COMMITTED.splitlines() if "betting, once" in line]


def test_peeking_breaks_what_is_looked_at_once_and_not_the_bets() -> None:
    sets = 1000
    assert peeking("exact", 100, sets, seed=1) > most(sets) + 0.02
    assert peeking("betting", 100, sets, seed=1) <= most(sets)


def test_searches_and_several_claims_in_few_sets() -> None:
    sets = 300
    found = searching(sets, seed=4)
    assert found["attack: mean p of the rounds, same samples (as printed)"] > most(sets)
    assert found["the safest of 20 defences, same samples"] > most(sets)
    assert found["attack: largest p of the rounds, other samples"] <= most(sets)
    assert found["the safest of 20 defences, other samples"] <= most(sets)
    claims = many_claims(sets, seed=5)
    assert max(claims[name] for name in VALID) <= most(sets)
    assert min(claims[name] for name in BROKEN) > most(sets)


def test_pages_say_what_is_rejected_and_print_what_is_charged() -> None:
    """What is rejected is a risk above alpha, so what is certified is one of at most alpha."""
    method = (DOCS / "certificate-method.md").read_text(encoding="utf-8")
    readme = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    assert "break at most a stated share of inputs" in readme
    assert "breaks at most 10 %" in " ".join(method.split())
    assert "at most a share `alpha`" in " ".join(str(CertificateSpec.__doc__).split())
    assert search.HEADER in (DOCS / "benchmarks.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("method", METHODS)
def test_a_certificate_at_a_risk_of_alpha_is_rare(method: Method, n: int) -> None:
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
    found = searching(sets, seed=6)
    broken = [name for name in found if "mean p" in name or "20 defences, same" in name]
    assert len(broken) == 3
    assert min(found[name] for name in broken) > 2 * ZETA, "the mean of p, and the safest of several"
    assert max(share for name, share in found.items() if name not in broken) <= most(sets)


@pytest.mark.slow
def test_several_claims_at_once() -> None:
    sets = 10_000
    claims = many_claims(sets, seed=7)
    assert max(claims[name] for name in VALID) <= most(sets)
    assert min(claims[name] for name in BROKEN) > 2 * ZETA


@pytest.mark.slow
def test_bets_have_more_power_than_those_that_adapt_to_the_mean() -> None:
    for risk in (0.05, 0.07, 0.08):
        found = {name: betting_power(bet, 1000, risk, 2000, seed=8) for name, bet in STRATEGIES.items()}
        assert found["betting"] >= found["betting, aGRAPA"] + 0.1
        assert found["betting"] >= found["betting, equal parts"] - 0.02
        assert found["betting"] <= float(power(1000, risk, ALPHA, ZETA)) + 0.01
        assert np.isfinite(list(found.values())).all()
