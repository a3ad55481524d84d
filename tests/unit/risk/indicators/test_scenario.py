"""Scenarios from mappings: what they mean, and what is refused, by path."""

from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import StudyError
from advrisk.core.plain import plain
from advrisk.risk.indicators import Scenario, what_if
from advrisk.risk.indicators.scenario import drawn_shares

TOWN: dict[str, Any] = {"wet": {"weight": "3/10", "of": {"rain": 0.8, "fog": 0.2}}, "transfer": {"weight": 0.001}}


def test_a_scenario_is_a_tree() -> None:
    found = Scenario.from_mapping("town", TOWN)
    assert [branch.path for branch in found.walk()] == [
        "town.wet",
        "town.wet.of.rain",
        "town.wet.of.fog",
        "town.transfer",
    ]
    assert found.branches[0].weight.mean == pytest.approx(0.3)
    assert not found.uncertain
    assert plain(found.source) == TOWN


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({}, "town: names no branch"),
        ({"a": -0.1}, "town.a: a weight is a share from 0 to 1, found -0.1"),
        ({"a": 1.5}, "town.a: a weight is a share from 0 to 1"),
        ({"a": 0.7, "b": 0.4}, r"town: the weights sum to 1.1, more than 1: 0.7 \+ 0.4"),
        ({"a": {"weight": 0.5, "of": {"b": 0.9, "c": 0.2}}}, r"town.a.of: the weights sum to 1.1, more than 1"),
        ({"a": float("nan")}, "town.a: a finite number is needed"),
        ({"a": "much"}, "town.a: a number or a fraction"),
        ({"a": True}, "town.a: a number is needed"),
        ({"a": None}, "town.a: a number or a fraction"),
        ({"a": {"weight": 0.5, "of": {}}}, "town.a.of: names of branches are needed"),
        ({"a": {"weight": 0.5, "of": []}}, "town.a.of: names of branches are needed"),
        ({"a": {"weight": 0.5, "of": "rain"}}, "town.a.of: names of branches are needed"),
        ({"a": {"weight": 0.5, "of": ["b", "b"]}}, "town.a.of: 'b' is listed 2 times"),
        ({"a": {"of": ["b"]}}, "town.a: needs a weight"),
        ({"a": {"weigth": 0.5}}, "town.a: a branch has no key 'weigth'; did you mean 'weight'"),
        ({"a": {"weight": 0.5, "arms": []}}, "town.a.arms: names of arms"),
        ({"a": {"weight": 0.5, "arms": [3]}}, "town.a.arms: names of arms"),
        ({"a": {"weight": 0.5, "arms": ["b"], "of": ["c"]}}, "town.a: has both `of` and `arms`"),
        ({"a": {"weight": 0.5, "where": "night"}}, "town.a.where: a mapping of strata to values"),
        ({"a": {"weight": 0.5, "where": {"light": []}}}, "town.a.where.light: a value or a list"),
        ({"a": {"weight": 0.5, "aggregate": "maximum"}}, "town.a.aggregate: found 'maximum'; did you mean 'max'"),
        ({"a": {"weight": 0.5, "aggregate": "max", "of": {"b": 1}}}, "town.a: `aggregate: max` and weights under `of`"),
        ({"a": {"weight": 0.5, "dirichlet": True}}, "town.a.dirichlet: shares are drawn among"),
        ({"a": {"weight": 0.5, "dirichlet": True, "of": ["b"]}}, "town.a: `dirichlet` needs weights under `of`"),
        ({"a": {"weight": 0.5, "dirichlet": 1, "of": {"b": 1}}}, "town.a.dirichlet: true or false"),
        (
            {"a": {"weight": 0.5, "dirichlet": True, "of": {"b": 0}}},
            "town.a.of.b: under `dirichlet` a weight is a count",
        ),
        ({"dirichlet": True, "a": {"beta": [1, 2]}}, "town.a: under `dirichlet` a weight is a count"),
        ({"a": {"beta": [0, 2]}}, r"town.a.beta: both numbers must be more than 0, found \[0, 2\]"),
        ({"a": {"beta": [1]}}, "town.a: a weight is a number or `beta"),
        ({"a": {"beta": [1, float("inf")]}}, "town.a.beta: a finite number"),
        (
            {"a": {"beta": [5, 5]}, "b": 0.5},
            "town: the weights sum to 1 on average, and to more than 1 in 5. % of the draws",
        ),
        ({"clean": {"weight": 0.5, "where": {"light": "night"}}}, "town.clean: clean has a weight and nothing else"),
        ({"a": 0.1, "strata": {"light": {"day": 0.5}}}, "town.strata.light: the shares sum to 0.5; they must sum to 1"),
        ({"a": 0.1, "strata": {"light": {"day": -1, "night": 2}}}, "town.strata.light.day: a share cannot be negative"),
        ({"a": 0.1, "strata": {"light": "day"}}, "town.strata.light: shares are needed"),
        ({"a": 0.1, "strata": []}, "town.strata: a mapping"),
        ({"a.b": 0.1, "a": {"weight": 0.1, "of": {"b": 1}}}, "town.a.b: two branches have this path"),
        ({3: 0.1}, "town: branches have names, found 3"),
        ([0.1], "town: a scenario is a mapping"),
    ],
)
def test_what_is_wrong_is_refused_with_its_path(written: Any, complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        Scenario.from_mapping("town", written)


def test_weights_may_exceed_one_by_rounding_only() -> None:
    Scenario.from_mapping("town", {f"a{k}": 0.1 for k in range(10)})
    with pytest.raises(StudyError, match=r"sum to 1\.00000001"):
        Scenario.from_mapping("town", {"a": 0.5, "b": 0.50000001})


def test_nesting_has_an_end() -> None:
    level: dict[str, Any] = {"a": 1}
    for _ in range(10_000):
        level = {"a": {"weight": 1, "of": level}}
    with pytest.raises(StudyError, match="nested more than 20 deep"):
        Scenario.from_mapping("town", level)


def test_what_if_changes_weights_by_path() -> None:
    town = Scenario.from_mapping("town", TOWN)
    changed = what_if(town, {"wet": 0.5, "wet.rain": 0.9, "wet.of.fog": 0.1, "transfer": {"beta": [1, 9]}})
    expected = {"wet": {"weight": 0.5, "of": {"rain": 0.9, "fog": 0.1}}, "transfer": {"weight": {"beta": [1, 9]}}}
    assert changed == Scenario.from_mapping("town", expected)
    assert town == Scenario.from_mapping("town", TOWN)
    with pytest.raises(StudyError, match=r"town\.wet\.of: the weights sum to 1.1"):
        what_if(town, {"wet.rain": 0.9})
    with pytest.raises(StudyError, match=r"town has no branch 'wet.ran'.*did you mean 'wet.rain'"):
        what_if(town, {"wet.ran": 0.9})
    dotted = Scenario.from_mapping("s", {"pgd-0.1": 0.1, "pgd-0": {"weight": 0.1, "of": {"2": 0.5}}})
    assert what_if(dotted, {"pgd-0.1": 0.2}).branches[0].weight.mean == 0.2


def test_uncertain_weights_are_drawn_as_they_say() -> None:
    beta = Scenario.from_mapping("s", {"a": {"beta": [3, 7]}, "b": 0.1})
    shares, redrawn = drawn_shares(beta.branches, 20_000, np.random.default_rng(0), dirichlet=False)
    assert redrawn < 20
    assert shares.mean(axis=0) == pytest.approx([0.3, 0.1], abs=0.005)
    assert shares[:, 0].var() == pytest.approx(0.3 * 0.7 / 11, rel=0.05)
    assert shares.sum(axis=1).max() <= 1 + 1e-9
    counts = Scenario.from_mapping("s", {"dirichlet": True, "a": 2, "b": 3, "clean": 5})
    shares, _ = drawn_shares(counts.branches, 20_000, np.random.default_rng(0), dirichlet=True)
    assert shares.mean(axis=0) == pytest.approx([0.2, 0.3, 0.5], abs=0.01)
    assert shares[:, 1].var() == pytest.approx(0.3 * 0.7 / 11, rel=0.05)
