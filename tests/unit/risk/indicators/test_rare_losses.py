"""Intervals of risks that rest on rare great losses: what samples that were not seen may have lost."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from advrisk.risk.bounded_mean import mean_limits
from advrisk.risk.indicators import RiskTensor, Scenario, risk
from advrisk.risk.indicators.bands import Contributions, bands
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.indicators.tree import scenario_risk
from advrisk.risk.proportion import proportion

RAIN = Scenario.from_mapping("s", {"rain": 1})
UNSEEN = 1 - 0.025 ** (1 / 300)  # the probability of a kind of sample that 300 draws do not show


def tensor(values: Any, night: Any = None, *, bounded: bool = True, weight: Any = None) -> RiskTensor:
    column = np.asarray(values, dtype=float)[:, None]
    dark = np.zeros(len(column), dtype=bool) if night is None else np.asarray(night)
    return RiskTensor.from_arrays(
        column,
        arms=["rain"],
        kind=["corruption"],
        weight=np.ones(len(column)) if weight is None else weight,
        strata={"light": np.where(dark, "night", "day").tolist()},
        ranges={"loss": (0.0, 1.0)} if bounded else {},
    )


def test_a_share_has_its_exact_interval() -> None:
    values = np.arange(300) < 7
    found, exact = risk(tensor(values), RAIN), proportion(7, 300)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), rel=0.02)


def test_slight_losses_of_all_samples_say_nothing_of_rare_great_ones() -> None:
    """300 losses of about 0.01: a total loss may still have the probability that none of 300 draws shows it."""
    values = np.linspace(0.005, 0.015, 300)
    found = risk(tensor(values), RAIN)
    assert found.high == pytest.approx(0.01 + 0.99 * UNSEEN, rel=0.02)
    free = risk(tensor(values, bounded=False), RAIN)
    assert free.high < 0.0105  # nothing is known of a loss without a range
    assert (found.method, free.method) == ("samples, Korn-Graubard and Gaffke", "samples, t")


def test_losses_of_both_kinds_have_gaffkes_interval() -> None:
    values = np.where(np.arange(300) < 3, 1.0, np.linspace(0, 0.02, 300))
    found = risk(tensor(values), RAIN)
    assert found.high == pytest.approx(mean_limits(values, 0.0, 1.0, 0.95)[1], abs=1e-6)


def test_a_model_is_not_named_for_failures_that_were_not_seen() -> None:
    """The first loses nothing on 300 samples, or all of it on one; the other a hundredth everywhere."""
    for failures in (0, 1):
        made = {"rare": tensor(np.arange(300) < failures), "slight": tensor(np.linspace(0.005, 0.015, 300))}
        branch = compare_models(made, RAIN).branches[""]
        assert branch.undecided("rare", "slight")
        found = branch.difference("rare", "slight")
        back = branch.difference("slight", "rare")
        assert (found.low, found.high) == pytest.approx((-back.high, -back.low))
        assert found.high > found.value + UNSEEN
        assert found.method == "paired, samples, t and Gaffke"
    much = {"rare": tensor(np.zeros(300)), "more": tensor(np.full(300, 0.05))}
    assert not compare_models(much, RAIN).branches[""].undecided("rare", "more")


def test_pseudo_values_of_samples_that_weigh_alike_are_their_losses() -> None:
    values = np.random.default_rng(0).random(50)
    asked = scenario_risk(tensor(values), RAIN)
    found, weights = asked.evaluated, asked.root.weights
    (band,) = bands(found, weights[None], weights)
    told, least, most = Contributions.of(found, weights).pseudo_values(band, float(band.value[0]), 0.0, 1.0)
    assert told == pytest.approx(values)
    assert (least, most) == pytest.approx((0.0, 1.0))


def test_pseudo_values_of_strata_vary_within_them_and_a_sample_not_seen_is_of_one_of_them() -> None:
    """Half of the weight is at night: the mean is that of both means, and a loss counts by what its stratum weighs."""
    rng = np.random.default_rng(1)
    night = np.arange(100) < 40
    values = rng.random(100)
    scenario = Scenario.from_mapping("s", {"rain": 1, "strata": {"light": {"night": 0.5, "day": 0.5}}})
    asked = scenario_risk(tensor(values, night), scenario)
    found, weights = asked.evaluated, asked.root.weights
    (band,) = bands(found, weights[None], weights)
    value = float(band.value[0])
    told, least, most = Contributions.of(found, weights).pseudo_values(band, value, 0.0, 1.0)
    of = {True: (values[night].mean(), 0.5 / 40 * 100), False: (values[~night].mean(), 0.5 / 60 * 100)}
    assert value == pytest.approx((of[True][0] + of[False][0]) / 2)
    expected = [value + of[dark][1] * (loss - of[dark][0]) for dark, loss in zip(night.tolist(), values, strict=True)]
    assert told == pytest.approx(expected)
    assert most == pytest.approx(max(value + scale * (1 - mean) for mean, scale in of.values()))
    assert least == pytest.approx(min(value - scale * mean for mean, scale in of.values()))


def test_uncertain_weights_leave_as_much_room_for_rare_losses() -> None:
    values = np.linspace(0.005, 0.015, 300)
    night = np.arange(300) % 2 == 0
    made = tensor(values, night)
    tree = {name: {"weight": 0.5, "where": {"light": name}, "arms": ["rain"]} for name in ("night", "day")}
    sure = risk(made, Scenario.from_mapping("s", tree))
    counts = {name: {**branch, "weight": 50_000} for name, branch in tree.items()}
    unsure = risk(made, Scenario.from_mapping("s", {"dirichlet": True, **counts}))
    assert unsure.high == pytest.approx(sure.high, rel=0.02)
    assert sure.high > 0.01 + 0.9 * UNSEEN


def test_samples_of_great_weight_have_room_of_their_own() -> None:
    """Five at night that weigh as much as 295 by day: a total loss there may have a probability of a half."""
    night = np.arange(300) < 5
    values = np.full(300, 0.01) + 0.001 * (np.arange(300) % 2)
    tree = {name: {"weight": 0.5, "where": {"light": name}, "arms": ["rain"]} for name in ("night", "day")}
    found = risk(tensor(values, night), Scenario.from_mapping("s", tree))
    assert found.high > 0.5 * stats.beta.ppf(0.975, 1, 5)
