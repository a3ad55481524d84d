"""Scenarios on tensors against a naive loop over losses, samples, arms and repeats; and what must never change."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advrisk.core.errors import RiskError
from advrisk.risk.indicators import Indicator, RiskTensor, Scenario, indicator_tree, risk, what_if

ARMS = ("clean", "rain-1", "rain-2", "fog-1", "dust-1", "pgd", "square")
KINDS = ("clean", *("corruption",) * 4, "attack", "attack")
FAMILIES = ("clean", "rain", "rain", "fog", "dust", "pgd", "square")
CAUSES = ("", "weather", "weather", "weather", "sensor", "", "")
VALUES = st.sampled_from([0.0, 1.0, 0.25, 7.5])


@st.composite
def tensors(draw: st.DrawFn, *, least: int = 2) -> RiskTensor:
    """Two losses, some samples, all arms with 1 to 3 repeats; now and then there is no verdict, or no weight."""
    n, n_repeats = draw(st.integers(least, 6)), draw(st.integers(1, 3))
    shape = (2, n, len(ARMS), n_repeats)
    values = np.array(draw(st.lists(VALUES, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))).reshape(shape)
    repeats = np.array(draw(st.lists(st.integers(1, n_repeats), min_size=len(ARMS), max_size=len(ARMS))))
    for arm, held in enumerate(repeats):
        values[:, :, arm, held:] = np.nan
    for sample in draw(st.lists(st.integers(0, n - 1), max_size=1)):
        values[:, sample, draw(st.integers(0, len(ARMS) - 1)), 0] = np.nan
    weight = draw(st.lists(st.sampled_from([1.0, 0.5, 3.0, 0.0]), min_size=n, max_size=n))
    weight[0] = 1.0
    light = ["day", "night", *draw(st.lists(st.sampled_from(["day", "night"]), min_size=n - 2, max_size=n - 2))]
    return RiskTensor.from_arrays(
        values,
        losses=["a", "b"],
        arms=ARMS,
        kind=KINDS,
        family=FAMILIES,
        cause=CAUSES,
        weight=weight,
        strata={"light": light},
        repeats=repeats,
        ranges={"a": (0.0, 7.5)},
    )


WHERE = st.sampled_from([{}, {}, {"light": "night"}, {"light": ["day", "night"]}])
LEAVES = st.sampled_from(["rain", "fog", "dust-1", "weather", "pgd", "rain-*", "clean"])


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    return _level(draw, 0)


def _level(draw: st.DrawFn, depth: int) -> dict[str, Any]:
    names = draw(st.lists(LEAVES, min_size=1, max_size=3, unique=True))
    parts = [draw(st.integers(1, 4)) for _ in range(len(names) + 1)]
    level: dict[str, Any] = {}
    for place, name in enumerate(names):
        weight = parts[place] / sum(parts)
        kind = draw(st.integers(0, 4))
        where = draw(WHERE)
        if kind == 0 and depth < 2:
            level[f"branch {place}"] = {"weight": weight, "where": where, "of": _level(draw, depth + 1)}
        elif kind == 1:
            level[f"attacks {place}"] = {"weight": weight, "where": where, "of": ["pgd", "square"]}
        elif kind == 2 and name != "clean":
            how = draw(st.sampled_from(["mean", "max"]))
            level[name] = {"weight": weight, "where": where, "aggregate": how}
        elif kind == 3 and name != "clean":
            level[f"all {place}"] = (
                {"weight": weight, "where": where, "arms": ["pgd", name], "aggregate": "mean"}
                if (name not in ("weather", "rain", "fog"))
                else {"weight": weight, "where": where, "of": ["rain", "fog"]}
            )
        else:
            level[name] = weight
    return level


# The definition, one cell at a time


def of_arm(tensor: RiskTensor, loss: int, sample: int, arm: int) -> list[float]:
    return [float(tensor.data.values[loss, sample, arm, repeat]) for repeat in range(int(tensor.repeats[arm]))]


def arms_named(pattern: str) -> list[int]:
    from fnmatch import fnmatchcase

    return [k for k in range(len(ARMS)) if any(fnmatchcase(x, pattern) for x in (ARMS[k], FAMILIES[k], CAUSES[k]) if x)]


def leaves(level: Mapping[str, Any], weight: float, where: list[Any]) -> list[tuple[float, list[Any], list[int], str]]:
    """(weight, conditions, arms, how) of everything that a level says."""
    found, rest = [], weight
    for name, entry in level.items():
        entry = entry if isinstance(entry, dict) else {"weight": entry}
        own, inside = weight * entry["weight"], [*where, entry.get("where", {})]
        rest -= own
        if isinstance(entry.get("of"), dict):
            found += leaves(entry["of"], own, inside)
        elif "of" in entry and entry["of"][0] == "pgd":
            found.append((own, inside, [5, 6], "max"))
        elif "of" in entry:
            found += [(own / len(entry["of"]), inside, arms_named(one), "mean") for one in entry["of"]]
        else:
            arms = sorted({arm for one in entry.get("arms", [name]) for arm in arms_named(one)})
            attack = all(KINDS[arm] == "attack" for arm in arms)
            found.append((own, inside, arms, entry.get("aggregate", "max" if attack else "mean")))
    return [*found, (rest, where, [0], "mean")]


def naive(tensor: RiskTensor, written: Mapping[str, Any], loss: int) -> float | None:
    """The risk; None where some branch has no samples."""
    light = tensor.strata["light"]

    def happens(sample: int, where: list[Any]) -> bool:
        wanted = [one["light"] if isinstance(one["light"], list) else [one["light"]] for one in where if one]
        return all(light[sample] in values for values in wanted)

    parts = [part for part in leaves(written, 1.0, []) if part[0] > 1e-9 or part[2] != [0]]
    used = [
        sample
        for sample in range(len(tensor.samples))
        if tensor.weight[sample] > 0
        and not any(
            np.isnan(of_arm(tensor, loss, sample, arm)).any()
            for _, where, arms, _ in parts
            if happens(sample, where)
            for arm in arms
        )
    ]
    total = 0.0
    for weight, where, arms, how in parts:
        own = [sample for sample in used if happens(sample, where)]
        if not own:
            return None
        above = below = 0.0
        for sample in own:
            values = [of_arm(tensor, loss, sample, arm) for arm in arms]
            if how == "max":
                value = max(max(of) for of in values)
            else:
                value = sum(sum(of) / len(of) for of in values) / len(values)
            above += tensor.weight[sample] * value
            below += tensor.weight[sample]
        total += weight * above / below
    return total


@given(tensors(), scenarios())
def test_risk_is_the_loop_over_everything(tensor: RiskTensor, written: dict[str, Any]) -> None:
    scenario = Scenario.from_mapping("s", written)
    for place, loss in enumerate(tensor.losses):
        expected = naive(tensor, written, place)
        if expected is None:
            with pytest.raises(RiskError, match="sample"):
                risk(tensor, scenario, loss=loss)
            continue
        found = risk(tensor, scenario, loss=loss)
        assert found.value == pytest.approx(expected, abs=1e-9)


def assert_sums(indicator: Indicator) -> None:
    if indicator.children:
        assert sum(child.contribution.value for child in indicator.children) == indicator.contribution.value
        assert sum(child.weight for child in indicator.children) == pytest.approx(indicator.weight)
    for child in indicator.children:
        assert_sums(child)


def grown(tensor: RiskTensor, scenario: Scenario) -> Indicator | None:
    """None where a branch has no samples left."""
    try:
        return indicator_tree(tensor, scenario, loss="a")
    except RiskError:
        return None


@settings(max_examples=50)
@given(tensors(), scenarios())
def test_contributions_sum_exactly_to_their_parent(tensor: RiskTensor, written: dict[str, Any]) -> None:
    tree = grown(tensor, Scenario.from_mapping("s", written))
    if tree is not None:
        assert_sums(tree)
        assert tree.value == tree.contribution


@settings(max_examples=30)
@given(tensors(), scenarios(), st.integers(1, 3))
def test_an_arm_that_is_added_changes_no_bit(tensor: RiskTensor, written: dict[str, Any], repeats: int) -> None:
    scenario = Scenario.from_mapping("s", written)
    before = grown(tensor, scenario)
    n = len(tensor.samples)
    new = np.random.default_rng(0).random((2, n, 1, repeats + 2))
    added = RiskTensor.from_arrays(
        new,
        losses=["a", "b"],
        arms=["new"],
        kind=["corruption"],
        family=["unheard-of"],
        weight=tensor.weight,
        strata={"light": tensor.strata["light"].tolist()},
        ranges={"a": (0.0, 7.5)},
    )
    assert grown(tensor.merge(added), scenario) == before


@given(tensors())
def test_attacks_that_are_added_never_lower_the_risk(tensor: RiskTensor) -> None:
    scenario = Scenario.from_mapping("s", {"attack-*": 0.5})
    complete = ~np.isnan(tensor.data.values[:, :, [0, 5, 6], 0]).any(axis=(0, 2))
    names = [name for name, whole in zip(tensor.samples, complete, strict=True) if whole]
    if not names or not (tensor.weight[complete] > 0).any():
        return
    renamed = RiskTensor(
        tensor.select(sample=names, arm=["clean", "pgd", "square"]).data.assign_coords(
            arm=["clean", "attack-1", "attack-2"]
        )
    )
    fewer = renamed.select(arm=["clean", "attack-1"])
    assert risk(renamed, scenario, loss="b").value >= risk(fewer, scenario, loss="b").value


@settings(max_examples=30)
@given(tensors(), scenarios(), st.floats(0, 1))
def test_what_if_is_building_anew(tensor: RiskTensor, written: dict[str, Any], weight: float) -> None:
    scenario = Scenario.from_mapping("s", written)
    name = next(iter(written))
    others = sum(entry["weight"] if isinstance(entry, dict) else entry for entry in written.values())
    own = written[name]["weight"] if isinstance(written[name], dict) else written[name]
    new = weight * max(0.0, 1 - (others - own))
    entry = {**written[name], "weight": new} if isinstance(written[name], dict) else new
    changed = what_if(scenario, {name: new})
    assert changed == Scenario.from_mapping("s", {**written, name: entry})
    assert scenario == Scenario.from_mapping("s", written), "the old one is as it was"
    assert grown(tensor, changed) == grown(tensor, Scenario.from_mapping("s", {**written, name: entry}))


@given(tensors(), st.sampled_from(["mean", "max"]))
def test_aggregates_are_loops(tensor: RiskTensor, how: Any) -> None:
    found = tensor.aggregate(["repeat", "arm", "sample"], how)
    for loss in range(2):
        of_sample = {}
        for sample in range(len(tensor.samples)):
            values = [of_arm(tensor, loss, sample, arm) for arm in range(len(ARMS))]
            if not any(np.isnan(of).any() for of in values):
                of_sample[sample] = (
                    max(max(of) for of in values) if how == "max" else np.mean([np.mean(of) for of in values])
                )
        if how == "max" and of_sample:
            assert float(found[loss]) == max(of_sample.values())
        weights = [tensor.weight[sample] for sample in of_sample]
        if how == "mean" and sum(weights):
            assert float(found[loss]) == pytest.approx(np.average(list(of_sample.values()), weights=weights))
