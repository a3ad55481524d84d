"""Intervals where some samples weigh more than others, against textbook formulas."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from advrisk.risk.indicators import RiskTensor, Scenario, risk
from advrisk.risk.indicators.estimates import standard_error
from advrisk.risk.indicators.tree import scenario_risk
from advrisk.risk.proportion import share_interval


def tensor(values: Any, night: Any, **more: Any) -> RiskTensor:
    """Losses under rain, by day and by night."""
    return RiskTensor.from_arrays(
        np.asarray(values, dtype=float)[:, None],
        arms=["rain"],
        kind=["corruption"],
        strata={"light": np.where(night, "night", "day").tolist()},
        **more,
    )


def halves(night: float) -> Scenario:
    """Two branches that share no sample."""
    weights = {"night": night, "day": 1 - night}
    return Scenario.from_mapping(
        "s", {name: {"weight": w, "where": {"light": name}, "arms": ["rain"]} for name, w in weights.items()}
    )


def stratified(night: float) -> Scenario:
    return Scenario.from_mapping("s", {"rain": 1, "strata": {"light": {"night": night, "day": 1 - night}}})


def error_of(made: RiskTensor, scenario: Scenario) -> float:
    asked = scenario_risk(made, scenario)
    return standard_error(asked.evaluated, asked.root)


@pytest.mark.parametrize("of", [halves, stratified])
@pytest.mark.parametrize("n_night", [2, 3, 20, 50])
def test_the_variance_is_that_of_stratified_samples(of: Any, n_night: int) -> None:
    """Cochran: the sum of W_h^2 s_h^2 / n_h, each s_h with its own n_h - 1."""
    values = np.random.default_rng(n_night).gamma(2.0, size=100)
    night = np.arange(100) < n_night
    expected = sum((w * stats.sem(values[some])) ** 2 for w, some in ((0.3, night), (0.7, ~night)))
    assert error_of(tensor(values, night), of(0.3)) ** 2 == pytest.approx(expected)


@pytest.mark.parametrize("of", [halves, stratified])
def test_few_samples_of_great_weight_have_their_own_students_interval(of: Any) -> None:
    values = np.random.default_rng(0).normal(size=100)
    night = np.arange(100) < 4
    found = risk(tensor(values, night), of(0.5))
    parts = [0.5 * stats.t.ppf(0.975, some.size - 1) * stats.sem(some) for some in (values[night], values[~night])]
    assert found.value == pytest.approx((values[night].mean() + values[~night].mean()) / 2)
    assert found.high - found.value == pytest.approx(np.hypot(*parts))
    assert found.value - found.low == pytest.approx(np.hypot(*parts))


def test_few_samples_that_all_went_well_say_little() -> None:
    """None of 5 at night: Clopper and Pearson's limit of 0.52, times its weight."""
    night = np.arange(300) < 5
    values = (np.arange(300) % 20 == 19).astype(float)  # 15 of 295 by day
    found = risk(tensor(values, night, ranges={"loss": (0, 1)}), halves(0.1))
    share = 15 / 295
    day = share_interval(share, float(np.sqrt(share * (1 - share) / 294)), 295, 0.95)
    at_night = stats.beta.ppf(0.975, 1, 5)
    assert found.value == pytest.approx(0.9 * share)
    assert found.high - found.value == pytest.approx(np.hypot(0.1 * at_night, 0.9 * (day[1] - share)), rel=1e-6)
    assert found.value - found.low == pytest.approx(0.9 * (share - day[0]), rel=1e-6)


@pytest.mark.parametrize("of", [halves, stratified])
def test_one_sample_of_its_kind_may_have_been_anything(of: Any) -> None:
    values, night = np.zeros(100), np.arange(100) < 1
    found = risk(tensor(values, night, ranges={"loss": (0, 1)}), of(0.2))
    assert 0.2 * stats.beta.ppf(0.975, 1, 1) <= found.high < 0.22
    free = risk(tensor(values, night), of(0.2))
    assert (free.low, free.high) == (-np.inf, np.inf)


def test_samples_of_like_weight_are_one_band_whatever_branch_they_are_in() -> None:
    """Ten branches of ten samples: Satterthwaite's 90 degrees of freedom, not ten times 9."""
    values = np.random.default_rng(5).normal(size=100)
    kind = [str(place // 10) for place in range(100)]
    made = RiskTensor.from_arrays(values[:, None], arms=["rain"], kind=["corruption"], strata={"site": kind})
    tree = {f"at-{k}": {"weight": 0.1, "where": {"site": k}, "arms": ["rain"]} for k in range(10)}
    found = risk(made, Scenario.from_mapping("s", tree))
    error = np.sqrt(sum(0.01 * stats.sem(values[10 * k : 10 * k + 10]) ** 2 for k in range(10)))
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 90) * error)


def test_uncertain_weights_of_few_samples_are_no_surer_than_known_ones() -> None:
    night = np.arange(300) < 5
    values = (np.arange(300) % 20 == 19).astype(float)
    made = tensor(values, night, ranges={"loss": (0, 1)})
    weights = {"night": 0.1, "day": 0.9}
    known = {name: {"weight": w, "where": {"light": name}, "arms": ["rain"]} for name, w in weights.items()}
    sure = risk(made, Scenario.from_mapping("s", known))
    unsure = risk(made, Scenario.from_mapping("s", {"dirichlet": True, **_counts(known, 10_000)}))
    assert unsure.high == pytest.approx(sure.high, rel=0.12)
    assert unsure.low == pytest.approx(sure.low, abs=0.004)


def _counts(tree: dict[str, Any], n: int) -> dict[str, Any]:
    return {name: {**branch, "weight": n * branch["weight"]} for name, branch in tree.items()}
