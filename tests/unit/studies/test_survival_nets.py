"""Networks as units: slopes against least squares, p-values against every deal, and no false alarms."""

from itertools import permutations, product

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from studies import survival_nets
from studies.survival_nets import spread, trend


def test_the_slope_and_its_interval_are_those_of_least_squares_with_a_level_for_each_group() -> None:
    rng = np.random.default_rng(1)
    depths = np.repeat([8, 14, 20], 6)
    groups = np.tile(np.repeat(["plain", "noise"], 3), 3)
    values = 0.1 * depths + np.where(groups == "plain", 2.0, -1.0) + rng.normal(size=18)
    design = np.column_stack([depths, groups == "plain", groups == "noise"]).astype(float)
    beta, residue, *_ = np.linalg.lstsq(design, values)
    error = np.sqrt(residue[0] / 15 * np.linalg.inv(design.T @ design)[0, 0])
    found = trend(values, depths, groups).slope
    assert found.value == pytest.approx(beta[0])
    assert found.high - found.value == pytest.approx(
        2.1314495 * error
    )  # Student's 97.5 % point with 15 degrees of freedom
    assert found.low == pytest.approx(2 * found.value - found.high)


def test_the_p_value_is_the_share_of_all_deals() -> None:
    values = np.array([1.0, 2.5, 2.0, 4.0, 0.0, 0.3, 1.2])
    depths = np.array([8.0, 14, 20, 20, 8, 14, 20])
    groups = np.array(["a"] * 4 + ["b"] * 3)

    def lift(dealt: np.ndarray) -> float:
        return sum(float((values[groups == g] - values[groups == g].mean()) @ dealt[groups == g]) for g in ("a", "b"))

    deals = [np.array([*a, *b]) for a, b in product(permutations(depths[:4]), permutations(depths[4:]))]
    exact = np.mean([abs(lift(deal)) >= abs(lift(depths)) - 1e-9 for deal in deals])
    assert trend(values, depths, groups).p_value == pytest.approx(exact, abs=0.01)


def test_networks_that_differ_by_luck_alone_seldom_seem_to_follow_their_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survival_nets, "SHUFFLES", 1000)
    rng = np.random.default_rng(2)
    depths, groups = np.tile(np.repeat([8, 14, 20], 5), 3), np.repeat(["0", "0.1", "0.5"], 15)
    found = [trend(rng.exponential(size=45), depths, groups) for _ in range(60)]
    assert sum(one.p_value <= 0.05 for one in found) <= 8  # Binomial(60, 0.05) exceeds 8 with probability 0.003
    assert sum(one.slope.low > 0 or one.slope.high < 0 for one in found) <= 8


def test_a_real_trend_is_found_whatever_the_levels_of_groups() -> None:
    depths, groups = np.tile(np.repeat([8, 14, 20], 5), 3), np.repeat(["0", "0.1", "0.5"], 15)
    noise = np.random.default_rng(3).normal(size=45)
    values = 0.3 * depths + 50 * (groups == "0.5") + noise
    found = trend(values, depths, groups)
    assert found.slope.low < 0.3 < found.slope.high
    assert found.p_value < 1e-3


def test_spread_is_that_within_and_between_kinds() -> None:
    found = spread([1.0, 3.0, 10.0, 14.0], ["a", "a", "b", "b"])
    assert found.within == pytest.approx(np.sqrt((1 + 1 + 4 + 4) / 2))
    assert found.between == pytest.approx(np.std([2, 12], ddof=1))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(RiskError, match="1 of 3 networks have no finite number"):
        trend([1, np.inf, 2], [8, 14, 20], ["a"] * 3)
    with pytest.raises(RiskError, match="of one depth in each group"):
        trend([1, 2, 3, 4], [8, 8, 14, 14], ["a", "a", "b", "b"])
    with pytest.raises(RiskError, match="too few"):
        trend([1, 2], [8, 14], ["a", "a"])
    with pytest.raises(RiskError, match="two kinds"):
        spread([1, 2], ["a", "a"])
