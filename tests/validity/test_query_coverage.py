"""Intervals of what queries to a random model meet: known truth, random samples and random draws."""

import numpy as np
import pytest

from advrisk.risk.certificate import p_value
from advrisk.risk.indicators import RiskTensor, Scenario, risk
from advrisk.risk.mean_share import mean_difference, mean_share

DRAWS, REPLICATIONS = 11, 300
ALONE = Scenario.from_mapping("alone", {"arm": {"weight": 1, "arms": ["rain"]}})
WORST = Scenario.from_mapping("worst", {"evil": {"weight": 1, "arms": ["a", "b", "c"]}})
FEWEST = 0.912  # 300 replications of 95 %, less three standard errors


def rates(rng: np.random.Generator, spread: float, n: int) -> np.ndarray:
    """How often samples err: beta, mean 0.3; a small spread parameter makes nearly all of them 0 or 1."""
    return rng.beta(0.3 * spread, 0.7 * spread, n)


@pytest.mark.parametrize("spread", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("n", [20, 100])
def test_shares_of_queries_are_covered_over_samples_and_draws(spread: float, n: int) -> None:
    hits = dict.fromkeys(("share", "risk"), 0)
    rng = np.random.default_rng(int(10 * spread) + n)
    for _ in range(REPLICATIONS):
        found = rng.binomial(DRAWS, rates(rng, spread, n)) / DRAWS
        tensor = RiskTensor.from_arrays(
            found[:, None], arms=["rain"], kind=["corruption"], ranges={"loss": (0, 1)},
        )  # fmt: skip
        for name, one in (("share", mean_share(found)), ("risk", risk(tensor, ALONE))):
            assert one.value == pytest.approx(found.mean())
            hits[name] += one.low <= 0.3 <= one.high
    assert min(hits.values()) / REPLICATIONS >= FEWEST, hits


@pytest.mark.parametrize("spread", [0.3, 5.0])
def test_differences_of_queries_are_covered(spread: float) -> None:
    rng, hits, n = np.random.default_rng(3), 0, 60
    for _ in range(REPLICATIONS):
        own = rates(rng, spread, n)
        first, second = (rng.binomial(DRAWS, p) / DRAWS for p in (own, own * 0.5))
        one = mean_difference(first, second)
        hits += one.low <= 0.15 <= one.high
    assert hits / REPLICATIONS >= FEWEST


def test_the_worst_of_three_arms_is_covered_where_they_are_alike() -> None:
    rng, hits, naive, n = np.random.default_rng(4), 0, 0, 80
    for _ in range(REPLICATIONS // 2):
        own = rates(rng, 5.0, n)
        draws = rng.random((n, 3, DRAWS)) < own[:, None, None]
        tensor = RiskTensor.from_arrays(
            draws.mean(2), arms=["a", "b", "c"], kind=["attack"] * 3, ranges={"loss": (0, 1)},
            early=draws[:, :, :5].mean(2)[None, :, :, None], early_share=5 / DRAWS,
        )  # fmt: skip
        one, largest = risk(tensor, WORST), mean_share(draws.mean(2).max(1))
        hits += one.low <= 0.3 <= one.high
        naive += largest.low <= 0.3 <= largest.high
    assert hits / (REPLICATIONS // 2) >= 0.91
    assert naive / (REPLICATIONS // 2) < 0.2, "the largest mean is not the mean of the largest"


@pytest.mark.parametrize("spread", [0.5, 30.0])
def test_one_draw_of_each_sample_keeps_the_error_of_a_certificate(spread: float) -> None:
    """At a risk of exactly alpha a test errs at most zeta of the time; by majorities it errs nearly always."""
    rng, n, alpha, zeta = np.random.default_rng(5), 300, 0.3, 0.05
    one, mostly = [], []
    for _ in range(4000):
        draws = rng.random((n, DRAWS)) < rates(rng, spread, n)[:, None]
        one.append(int(draws[:, 0].sum()))
        mostly.append(int((draws.mean(1) > 0.5).sum()))
    wrong = np.mean(np.asarray(p_value(np.array(one), n, alpha)) <= zeta)
    assert wrong <= zeta + 3 * np.sqrt(zeta * (1 - zeta) / 4000)
    assert wrong > 0.02, "and it is not idle"
    if spread > 1:
        assert np.mean(np.asarray(p_value(np.array(mostly), n, alpha)) <= zeta) > 0.9
