"""Indicators on arrays whose risks can be told by hand."""

from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.indicators import (
    MissingArmsError,
    RiskTensor,
    Scenario,
    arm_risks,
    indicator_tree,
    risk,
    scenario_risk,
    uniform_scenario,
)
from advrisk.risk.proportion import proportion

ARMS = ("clean", "rain-1", "rain-2", "fog", "pgd", "square")


def tensor(**changes: Any) -> RiskTensor:
    """Four samples; rain-2 has two repeats."""
    values = np.full((4, 6, 2), np.nan)
    values[:, :, 0] = [[0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 0, 0]]
    values[:, 2, 1] = [0, 0, 1, 1]
    fields: dict[str, Any] = {
        "arms": ARMS,
        "kind": ("clean", *("corruption",) * 3, "attack", "attack"),
        "family": ("clean", "rain", "rain", "fog", "pgd", "square"),
        "cause": (None, "weather", "weather", "weather", None, None),
        "label": [0, 0, 1, 1],
        "strata": {"light": ["day", "day", "night", "night"]},
        "ranges": {"loss": (0, 1)},
    }
    return RiskTensor.from_arrays(values, **(fields | changes))


def tensor_of(values: Any) -> RiskTensor:
    """Any number of samples under these arms."""
    kinds = ("clean", *("corruption",) * 3, "attack", "attack")
    families = ("clean", "rain", "rain", "fog", "pgd", "square")
    return RiskTensor.from_arrays(values, arms=ARMS, kind=kinds, family=families, ranges={"loss": (0, 1)})


def test_a_tree_by_hand() -> None:
    scenario = Scenario.from_mapping(
        "town",
        {"wet": {"weight": 0.4, "of": {"rain": 0.5, "fog": 0.25}}, "bad": {"weight": 0.1, "of": ["pgd", "square"]}},
    )
    tree = indicator_tree(tensor(), scenario)
    # rain: mean of rain-1 and of rain-2's two repeats, sample by sample: 1/4, 0, 1, 1/4
    values = {one.path: one.value.value for one in tree.walk()}
    assert values == pytest.approx(
        {"": 0.4 * (0.5 * 0.375 + 0.25 * 0.5 + 0.25 * 0.25) + 0.1 * 0.75 + 0.5 * 0.25, "wet": 0.375, "wet.rain": 0.375,
         "wet.fog": 0.5, "wet.clean": 0.25, "bad": 0.75, "clean": 0.25}
    )  # fmt: skip
    assert [(one.path, one.weight) for one in tree.walk()] == [
        ("", 1.0), ("wet", 0.4), ("wet.rain", 0.2), ("wet.fog", 0.1), ("wet.clean", 0.1), ("bad", 0.1), ("clean", 0.5)
    ]  # fmt: skip
    assert tree.at("bad").aggregate == "max"
    assert tree.at("bad").arms == ("pgd", "square")
    assert [one.path for one in tree.leaves()] == ["clean", "bad", "wet.rain", "wet.fog", "wet.clean"]
    assert tree.value == risk(tensor(), scenario)


def test_leaves_are_found_by_id_family_cause_or_pattern() -> None:
    for name, value in {"weather": 5 / 12, "rain-*": 0.375, "rain-1": 0.25, "fog": 0.5}.items():
        assert risk(tensor(), Scenario.from_mapping("s", {name: 1})).value == pytest.approx(value)
    named = Scenario.from_mapping("s", {"storm": {"weight": 1, "arms": ["rain-*", "fog"]}})
    assert risk(tensor(), named).value == pytest.approx(5 / 12)


def test_attackers_choose_and_nature_does_not() -> None:
    def of(**entry: Any) -> float:
        return risk(tensor(), Scenario.from_mapping("s", {"x": {"weight": 1, **entry}})).value

    assert of(arms=["pgd", "square"]) == 0.75
    assert of(arms=["pgd", "square"], aggregate="mean") == 0.5
    assert of(of=["pgd", "square"], aggregate="mean") == 0.5
    assert of(of={"pgd": 0.5, "square": 0.5}) == 0.5
    assert of(arms=["rain-*"], aggregate="max") == 0.75
    assert of(of=["rain", "fog"], aggregate="max") == 0.75
    assert of(of=["rain", "fog"]) == pytest.approx((0.375 + 0.5) / 2)
    for mixed in ({"arms": ["pgd", "fog"]}, {"of": ["pgd", "fog"]}, {"of": ["pgd", "clean"]}):
        with pytest.raises(RiskError, match=r"s.x: found attacks \(pgd\) and other arms.*two branches"):
            of(**mixed)
    assert of(arms=["pgd", "fog"], aggregate="max") == 0.75


def test_where_and_strata_and_weights() -> None:
    night = Scenario.from_mapping("s", {"fog": {"weight": 0.5, "where": {"light": "night"}}})
    assert risk(tensor(), night).value == pytest.approx(0.5 * 1.0 + 0.5 * 0.25)
    inside = Scenario.from_mapping("s", {"x": {"weight": 1, "where": {"light": "night"}, "of": {"fog": 0.5}}})
    assert risk(tensor(), inside).value == pytest.approx(0.5 * 1.0 + 0.5 * 0.5), "the clean rest is at night, too"
    mix = Scenario.from_mapping("s", {"clean": 1, "strata": {"light": {"day": 0.9, "night": 0.1}}})
    assert risk(tensor(), mix).value == pytest.approx(0.1 * 0.5)
    weighted = tensor(weight=[3, 1, 2, 2])
    assert risk(weighted, Scenario.from_mapping("s", {"clean": 1})).value == pytest.approx(2 / 8)
    both = Scenario.from_mapping("s", {"clean": 1, "strata": {"light": {"day": 0.5, "night": 0.5}}})
    assert risk(tensor(weight=[3, 1, 3, 1]), both).value == pytest.approx(0.5 * 3 / 4)


def test_two_strata_are_raked_together() -> None:
    many = np.random.default_rng(0)
    n = 400
    light, site = many.choice(["day", "night"], n), many.choice(["a", "b", "c"], n)
    values = (many.random((n, 1)) < 0.1 + 0.3 * (light == "night")[:, None]).astype(float)
    found = RiskTensor.from_arrays(
        values, arms=["clean"], kind=["clean"], strata={"light": light.tolist(), "site": site.tolist()}
    )
    shares = {"light": {"day": 0.2, "night": 0.8}, "site": {"a": 0.5, "b": 0.25, "c": 0.25}}
    asked = scenario_risk(found, Scenario.from_mapping("s", {"clean": 1, "strata": shares}))
    weight = asked.evaluated.share[0]
    for name, of_value in shares.items():
        for value, share in of_value.items():
            assert weight[found.strata[name] == value].sum() == pytest.approx(share, abs=1e-9)
    assert asked.total().value == pytest.approx(float(weight @ values[:, 0]))


def test_a_stated_mix_takes_out_what_the_strata_explain() -> None:
    """Post-stratification: the variance is that within the strata."""
    rng = np.random.default_rng(1)
    light = np.repeat(["day", "night"], [300, 100])
    values = rng.normal(np.where(light == "night", 50, 0), 1)[:, None]
    found = RiskTensor.from_arrays(values, arms=["clean"], kind=["clean"], strata={"light": light.tolist()})
    mix = Scenario.from_mapping("s", {"clean": 1, "strata": {"light": {"day": 0.5, "night": 0.5}}})
    told = risk(found, mix)
    day, night = values[:300, 0], values[300:, 0]
    error = np.sqrt(0.25 * day.var() / 300 + 0.25 * night.var() / 100)
    assert told.value == pytest.approx((day.mean() + night.mean()) / 2)
    assert (told.high - told.low) / 2 == pytest.approx(1.97 * error, rel=0.01)


def test_one_arm_of_zeros_and_ones_is_nearly_clopper_and_pearson() -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.03, 0.4, 1.0):
        values = (rng.random((300, 1)) < share).astype(float)
        found = RiskTensor.from_arrays(values, arms=["clean"], kind=["clean"], ranges={"loss": (0, 1)})
        told, exact = risk(found, Scenario.from_mapping("s", {"clean": 1})), proportion(int(values.sum()), 300)
        assert (told.value, told.low, told.high) == pytest.approx((exact.value, exact.low, exact.high), abs=2e-3)
        assert told.high > told.low


def test_a_scenario_is_no_wider_than_its_branches_allow() -> None:
    """Never wrong when clean, always under attack: half of each is 0.5, as surely as both are known."""
    values = np.zeros((100, 6, 1))
    values[:, 4:] = 1
    found = tensor_of(values)
    tree = indicator_tree(found, Scenario.from_mapping("town", {"pgd": 0.5}))
    clean, attacked = (proportion(hits, 100, level=0.975) for hits in (0, 100))
    assert tree.at("clean").value.high < clean.high
    assert (tree.value.low, tree.value.high) == pytest.approx(
        ((clean.low + attacked.low) / 2, (clean.high + attacked.high) / 2), abs=1e-3
    )
    assert tree.contribution == tree.value == risk(found, Scenario.from_mapping("town", {"pgd": 0.5}))


def test_arms_that_were_not_run_are_told_all_at_once() -> None:
    scenario = Scenario.from_mapping("town", {"wet": {"weight": 0.5, "of": {"ran": 0.5, "hail": 0.5}}, "dust": 0.1})
    with pytest.raises(MissingArmsError, match=r"town.wet.of.ran: no arm fits 'ran'.*did you mean 'rain'") as error:
        risk(tensor(), scenario)
    assert error.value.missing == (("town.wet.of.ran", "ran"), ("town.wet.of.hail", "hail"), ("town.dust", "dust"))
    unclean = tensor().select(kind="corruption")
    with pytest.raises(MissingArmsError, match=r"s.clean: no arm fits 'clean'"):
        risk(unclean, Scenario.from_mapping("s", {"fog": 0.5}))
    assert risk(unclean, Scenario.from_mapping("s", {"fog": 1})).value == 0.5


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (
            {"fog": {"weight": 0.5, "where": {"lihgt": "night"}}},
            "s.fog.where: the samples have no stratum 'lihgt'.*'light'",
        ),
        ({"fog": {"weight": 0.5, "where": {"light": "nihgt"}}}, "s.fog.where: no sample has light = 'nihgt'.*'night'"),
        (
            {
                "a": {
                    "weight": 0.5,
                    "where": {"light": "day"},
                    "of": {"fog": {"weight": 1, "where": {"light": "night"}}},
                }
            },
            "s.a.of.fog.where: none of 4 samples has light = day, light = night",
        ),
        ({"fog": 0.5, "strata": {"site": {"a": 1}}}, "s.strata: the samples have no stratum 'site'"),
        (
            {"fog": 0.5, "strata": {"light": {"day": 0.5, "dusk": 0.5}}},
            "s.strata.light.dusk: has the share 0.5, but none",
        ),
        (
            {"fog": {"weight": 0.5, "where": {"light": "night"}}, "strata": {"light": {"day": 1}}},
            "s.fog: of the samples with a verdict from every arm, none has light = night",
        ),
    ],
)
def test_strata_without_samples(written: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RiskError, match=complaint):
        risk(tensor(), Scenario.from_mapping("s", written))


def test_samples_without_a_verdict_are_left_out_of_the_questions_that_need_them() -> None:
    values = tensor().data.values[0].copy()
    values[2, 3, 0] = np.nan  # fog
    failed = np.zeros((4, 6), dtype=bool)
    failed[2, 3] = True
    found = RiskTensor.from_arrays(
        values, arms=ARMS, kind=tensor().kind, family=tensor().family, repeats=tensor().repeats, failed=failed
    )
    foggy = scenario_risk(found, Scenario.from_mapping("s", {"fog": 0.5}))
    assert (foggy.total().n, foggy.of_leaf.n_without_verdict, foggy.of_leaf.n_unfinished) == (3, 1, 0)
    assert foggy.total().value == pytest.approx(0.5 * 1 / 3)
    assert risk(found, Scenario.from_mapping("s", {"rain": 0.5})).n == 4
    values[:, 3, 0] = np.nan
    nothing = RiskTensor.from_arrays(values, arms=ARMS, kind=tensor().kind, repeats=tensor().repeats)
    with pytest.raises(RiskError, match=r"s: no sample has a verdict from every arm \(4 unfinished, 0 with errors\)"):
        risk(nothing, Scenario.from_mapping("s", {"fog": 0.5}))


def test_by_class_and_stratum() -> None:
    asked = scenario_risk(tensor(), Scenario.from_mapping("s", {"fog": 0.5}))
    assert {label: one.value for label, one in asked.by_class().items() if one} == {0: 0.0, 1: 0.75}
    found = asked.by_stratum()["light"]
    assert {value: one.value for value, one in found.items() if one} == {"day": 0.0, "night": 0.75}
    night = scenario_risk(tensor(), Scenario.from_mapping("s", {"fog": {"weight": 0.5, "where": {"light": "night"}}}))
    assert night.by_class()[0] is None, "it is never night for this class"


def test_uncertain_weights_widen_the_interval_and_say_so() -> None:
    rng = np.random.default_rng(0)
    values = (rng.random((500, 2)) < [0.1, 0.8]).astype(float)
    found = RiskTensor.from_arrays(
        values, arms=["clean", "rain"], kind=["clean", "corruption"], ranges={"loss": (0, 1)}
    )
    sure = indicator_tree(found, Scenario.from_mapping("s", {"rain": 0.3}))
    unsure = indicator_tree(found, Scenario.from_mapping("s", {"rain": {"beta": [6, 14]}}))
    assert unsure.value.value == pytest.approx(sure.value.value)
    assert unsure.value.high - unsure.value.low > 2 * (sure.value.high - sure.value.low)
    assert sure.weights_part == 0
    spread = (values[:, 1].mean() - values[:, 0].mean()) ** 2 * 0.3 * 0.7 / 21
    own = np.cov(0.7 * values[:, 0] + 0.3 * values[:, 1]) / 500
    assert unsure.weights_part == pytest.approx(spread / (spread + own), rel=0.05)
    assert unsure.at("rain").value.high == sure.at("rain").value.high, "given that it rains, nothing is unsure"
    again = indicator_tree(found, Scenario.from_mapping("s", {"rain": {"beta": [6, 14]}}))
    assert again == unsure, "draws are seeded"


def test_a_loss_without_a_range_has_a_t_interval() -> None:
    rng = np.random.default_rng(0)
    values = rng.gamma(1, 3, size=(50, 1))
    found = RiskTensor.from_arrays(values, arms=["clean"], kind=["clean"])
    told = risk(found, Scenario.from_mapping("s", {"clean": 1}))
    half = 2.0096 * values.std(ddof=1) / np.sqrt(50)
    assert (told.low, told.high) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4)
    assert told.method == "samples, t"


def test_one_sample_says_little() -> None:
    found = tensor().select(sample=["0"])
    told = risk(found, Scenario.from_mapping("s", {"clean": 1}))
    assert (told.low, told.high) == (0.0, pytest.approx(0.975))


def test_all_corruptions_alike() -> None:
    scenario = uniform_scenario(tensor())
    assert risk(tensor(), scenario).value == pytest.approx(0.5 * 0.375 + 0.5 * 0.5)
    paths = [one.path for one in indicator_tree(tensor(), scenario).walk()]
    assert paths == ["", "weather", "weather.rain", "weather.rain.rain-1", "weather.rain.rain-2", "weather.fog"]
    with pytest.raises(RiskError, match="has no corruption to average"):
        uniform_scenario(tensor().select(kind=["clean", "attack"]))


def test_arm_by_arm() -> None:
    found = {arm: one.value for arm, one in arm_risks(tensor()).items()}
    assert found == {"clean": 0.25, "rain-1": 0.25, "rain-2": 0.5, "fog": 0.5, "pgd": 0.5, "square": 0.5}


def test_what_is_asked_wrongly() -> None:
    clean = Scenario.from_mapping("s", {"clean": 1})
    with pytest.raises(RiskError, match="level must lie between 0 and 1"):
        risk(tensor(), clean, level=1.5)
    with pytest.raises(RiskError, match="no loss 'lost' in this tensor; did you mean 'loss'"):
        risk(tensor(), clean, loss="lost")
    with pytest.raises(RiskError, match="no branch 'claen'; did you mean 'clean'"):
        indicator_tree(tensor(), clean).at("claen")
