"""Indicators in figures, tables and words: what is drawn is what was found."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from advrisk.report.indicator_figures import (
    arm_losses,
    branch_bars,
    grouped_bars,
    loss_interval,
    loss_text,
    sunburst,
    wrapped_label,
)
from advrisk.report.indicators import (
    branch_names,
    drivers,
    in_scenario,
    indicator_content,
    on_pair,
    on_risk,
    risk_headline,
    short_verdict,
    tree_lines,
)

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.core.estimate import Estimate
from advrisk.risk.decision import Pair
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import ScenarioResult, compare_models
from advrisk.risk.indicators.tree import Indicator, arm_risks

NASTY = '<script>alert("x")</script>'
ARMS = ("clean", "rain-1", "rain-2", "rain-10", "fog-1", "pgd-8")
KIND = ("clean", *["corruption"] * 4, "attack")
TOWN = {
    "wet": {"weight": 0.3, "of": {"rain": 0.8, "fog": 0.2}},
    "evil": {"weight": 0.01, "arms": ["pgd-*"]},
}
PERCENT = (0.0, 1.0)


def tensor(model: str, harm: float, *, n: int = 300, scale: float = 1.0) -> RiskTensor:
    """A model whose arms go wrong as often as `harm` says."""
    rng = np.random.default_rng(3)
    odds = harm * np.array([0.05, 0.1, 0.3, 0.5, 0.2, 0.9])
    values = (rng.random((n, len(ARMS))) < odds).astype(float) * scale
    return RiskTensor.from_arrays(
        values,
        arms=ARMS,
        kind=KIND,
        family=["", "rain", "rain", "rain", "fog", "pgd"],
        cause=["", *["weather"] * 4, ""],
        losses=["cost"],
        label=np.arange(n) % 2,
        strata={"light": np.where(np.arange(n) % 3 == 0, "night", "day").tolist()},
        ranges={"cost": (0.0, scale)},
        model=model,
    )


def result_of(harms: dict[str, float], *, scale: float = 1.0, n: int = 300) -> ScenarioResult:
    tensors = {model: tensor(model, harm, scale=scale, n=n) for model, harm in harms.items()}
    return compare_models(tensors, Scenario.from_mapping("town", TOWN), loss="cost")


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    return result_of({"weak": 1.0, NASTY: 0.4, "middling": 0.95})


def test_bars_stand_for_the_estimates_and_whiskers_for_their_intervals(result: ScenarioResult) -> None:
    figure = branch_bars(result)
    bars = [one for one in figure["data"] if one["type"] == "bar"]
    drawn = {
        name: (value, value - less, value + more)
        for bar in bars
        for name, value, less, more in zip(
            bar["y"], bar["x"], bar["error_x"]["arrayminus"], bar["error_x"]["array"], strict=True
        )
    }
    assert set(drawn) == {"weak", NASTY, "middling"}
    for one in result.models:
        assert drawn[one.model] == pytest.approx((one.risk.value, one.risk.low, one.risk.high))
    assert figure["layout"]["yaxis"]["categoryarray"] == [one.model for one in result.models]


def test_bars_are_named_by_the_verdict_and_coloured_by_the_model(result: ScenarioResult) -> None:
    words = {name: bar["name"] for bar in branch_bars(result)["data"] if bar["type"] == "bar" for name in bar["y"]}
    assert words[NASTY] == "least risk"
    assert words["weak"] == words["middling"] == "more risk than another"
    colours = {
        name: bar["marker"]["color"]
        for bar in branch_bars(result)["data"] + branch_bars(result, "wet")["data"]
        if bar["type"] == "bar"
        for name in bar["y"]
    }
    assert colours == {bar["meta"]["series"]: bar["marker"]["color"] for bar in grouped_bars(result)["data"]}
    assert len(set(colours.values())) == 3
    alike = result_of({"a": 0.5, "b": 0.5})
    assert {bar["name"] for bar in branch_bars(alike)["data"] if bar["type"] == "bar"} == {"undecided"}


def test_bars_of_a_branch_are_those_of_its_comparison(result: ScenarioResult) -> None:
    figure = branch_bars(result, "wet.rain")
    for bar in figure["data"]:
        if bar["type"] == "bar":
            expected = [result.branches["wet.rain"].estimates[name].value for name in bar["y"]]
            assert bar["x"] == expected


def test_groups_hold_every_branch_of_a_level_and_every_model(result: ScenarioResult) -> None:
    figure = grouped_bars(result)
    assert len(figure["data"]) == 3
    for bar, one in zip(figure["data"], result.models, strict=True):
        assert bar["y"] == ["wet", "evil", "clean"]
        assert bar["x"] == [one.tree.at(path).value.value for path in bar["y"]]
    assert grouped_bars(result, "wet")["data"][0]["y"] == ["wet.rain", "wet.fog"]


def test_slices_of_a_sunburst_sum_exactly_and_in_proportion(result: ScenarioResult) -> None:
    for one in result.models:
        figure = sunburst(one.tree, result.bounds)
        assert figure is not None
        (trace,) = figure["data"]
        value = dict(zip(trace["ids"], trace["values"], strict=True))
        parents = dict(zip(trace["ids"], trace["parents"], strict=True))
        assert all(isinstance(part, int) for part in value.values())
        for name in value:
            parts = [value[child] for child, parent in parents.items() if parent == name]
            assert not parts or sum(parts) == value[name]
        for name, part in value.items():
            own = one.tree.at("" if name == "/" else name).contribution.value
            assert part / value["/"] == pytest.approx(own / one.risk.value, abs=1e-8)
        assert len(set(map(len, (trace["ids"], trace["labels"], trace["text"], trace["marker"]["colors"])))) == 1


@pytest.mark.parametrize("harms", [0.0, -1.0])
def test_nothing_or_a_gain_makes_no_sunburst(harms: float) -> None:
    estimate = Estimate(harms, harms, harms, 0.95, 9, "")
    leaf = Indicator("a", "a", 1.0, estimate, estimate, 0.0, "mean", ("arm",), 9)
    root = Indicator("town", "", 1.0, estimate, estimate, 0.0, "shares", ("arm",), 9, (leaf,))
    assert sunburst(root, (-5.0, 5.0)) is None


def test_attacks_are_spoken_of_where_there_are_some() -> None:
    told = " ".join(on_risk(assessment({"weak": 1.0})))
    assert "of attacks, the worst one on each sample counts" in told
    assert "a lower bound" in told
    calm = " ".join(on_risk(assessment({"weak": 1.0}, town={"wet": TOWN["wet"]})))
    assert "averaged" in calm
    assert "attack" not in calm


def assessment(harms: dict[str, float], *, scale: float = 1.0, town: Mapping[str, Any] = TOWN) -> IndicatorAssessment:
    tensors = {model: tensor(model, harm, scale=scale) for model, harm in harms.items()}
    found = compare_models(tensors, Scenario.from_mapping("town", town), loss="cost")
    arms = {"cost": {model: arm_risks(one) for model, one in tensors.items()}}
    return IndicatorAssessment((found,), arms, (), {}, 0.95, ("A note.",), None)


def test_the_heat_map_holds_the_mean_loss_of_every_arm() -> None:
    found = assessment({"weak": 1.0, "strong": 0.4})
    (trace,) = arm_losses(found, "cost", PERCENT)["data"]
    assert trace["x"] == ["strong", "weak"]  # least risk first
    for row, arm in zip(trace["z"], trace["y"], strict=True):
        assert row == [found.arms["cost"][model][arm].value for model in trace["x"]]
    assert set(trace["y"]) == set(ARMS)
    assert (trace["zmin"], trace["zmax"]) == (0.0, 1.0)


def test_arms_stand_by_kind_and_numbers_in_names_by_their_size() -> None:
    from dataclasses import replace

    tensors = {"weak": tensor("weak", 1.0)}
    found = replace(assessment({"weak": 1.0}), tensors=tensors)  # type: ignore[arg-type]
    (trace,) = arm_losses(found, "cost", PERCENT)["data"]
    assert trace["y"] == ["clean", "fog-1", "rain-1", "rain-2", "rain-10", "pgd-8"]


def test_an_arm_without_verdict_is_an_empty_cell() -> None:
    found = assessment({"weak": 1.0, "strong": 0.4})
    arms = {"cost": {model: dict(rows) for model, rows in found.arms["cost"].items()}}
    del arms["cost"]["weak"]["fog-1"]
    (trace,) = arm_losses(IndicatorAssessment(found.results, arms, (), {}, 0.95), "cost", PERCENT)["data"]
    assert trace["z"][trace["y"].index("fog-1")][1] is None


def test_contents_fit_into_json_and_name_only_figures_that_are_there(result: ScenarioResult) -> None:
    found = indicator_content(assessment({"weak": 1.0, "strong": 0.4}))
    json.dumps(found["indicator_figures"], allow_nan=False)
    (view,) = found["indicator_views"]
    wanted = [view.figure, *(one.figure for one in (*view.branches, *view.levels))]
    wanted += [one.sunburst for one in view.models] + [one.figure for one in found["heat_maps"]]
    assert set(wanted) == set(found["indicator_figures"])
    assert found["indicator_words"][-1] == "A note."
    assert [one.label for one in view.levels] == ["first level of the scenario", "within wet"]


def test_the_branch_that_contributes_most_is_the_first_choice() -> None:
    found = indicator_content(assessment({"weak": 1.0, "strong": 0.4}))
    (view,) = found["indicator_views"]
    result = view.result
    most = max(result.models[0].tree.leaves(), key=lambda leaf: leaf.contribution.value)
    assert view.branches[0].figure.endswith(most.path)
    assert len(view.branches) == len(result.branches) - 1


def test_without_an_assessment_the_reason_stands_there() -> None:
    found = indicator_content(None, "nothing is finished")
    assert (found["indicators"], found["unassessed"]) == (None, "nothing is finished")
    assert found["indicator_figures"] == {}


def test_names_from_outside_are_text_in_figures(result: ScenarioResult) -> None:
    """plotly reads a little HTML in what it shows; keys and values of axes it does not."""
    shown: list[str] = []
    for figure in (branch_bars(result), grouped_bars(result), sunburst(result.models[0].tree, PERCENT)):
        assert figure is not None
        for trace in figure["data"]:
            for field in ("text", "hovertext", "labels"):
                shown += trace.get(field, [])
            shown += [trace.get("name", ""), trace.get("hovertemplate", "")]
        shown += figure["layout"].get("yaxis", {}).get("ticktext", [])
    assert not [text for text in shown if "<script" in text]
    assert any("&lt;script" in text for text in shown)


def test_lines_of_the_tree_show_depth_and_share(result: ScenarioResult) -> None:
    lines = tree_lines(result.models[0].tree)
    assert [(line.depth, line.branch.name) for line in lines] == [
        (0, "town"), (1, "wet"), (2, "rain"), (2, "fog"), (1, "evil"), (1, "clean"),
    ]  # fmt: skip
    assert lines[0].share == 1
    assert sum(line.share or 0 for line in lines if not line.branch.children) == pytest.approx(1)


def test_headlines_say_what_is_decided() -> None:
    decided = result_of({"weak": 1.0, "strong": 0.2})
    amount = loss_interval(decided.models[0].risk, PERCENT)
    beside = loss_text(decided.models[1].risk.value, PERCENT)
    assert risk_headline(decided) == f"strong has the least risk of 2 models: {amount} (weak {beside})."
    alike = result_of({"a": 0.5, "b": 0.5})
    risks = [loss_text(one.risk.value, PERCENT) for one in alike.models]
    assert risk_headline(alike) == f"Undecided between a and b: risk {risks[0]} and {risks[1]}."
    assert in_scenario(alike).startswith("In the scenario town (loss: cost), undecided between a and b: ")
    assert "no other model" in risk_headline(result_of({"only": 0.5}))


def test_a_verdict_names_few_of_many() -> None:
    harms = {f"m{place}": 0.5 for place in range(8)}
    alike = result_of(harms)
    assert short_verdict(alike.branches[""], "m0") == "undecided against m1, m2, m3 and 4 more"
    assert "more risk than m0" in short_verdict(result_of({"m0": 0.1, "m1": 1.0}).branches[""], "m1")


def test_drivers_are_the_largest_contributions_in_order(result: ScenarioResult) -> None:
    one = result.of("weak")
    leaves = sorted(one.tree.leaves(), key=lambda leaf: -leaf.contribution.value)
    names = {"wet.rain": "rain", "wet.fog": "fog", "evil": "evil", "clean": "clean inputs"}
    expected = [f"{names[leaf.path]} {100 * leaf.contribution.value / one.risk.value:.0f} %" for leaf in leaves[:2]]
    assert drivers(one, 2) == "; ".join([*expected, f"{len(leaves) - 2} more"])


def test_a_name_that_stands_twice_is_told_by_its_path() -> None:
    tensors = {"weak": tensor("weak", 1.0)}
    town = {"north": {"weight": 0.2, "of": {"rain": 1}}, "south": {"weight": 0.2, "of": {"rain": 0.5, "fog": 0.5}}}
    found = compare_models(tensors, Scenario.from_mapping("town", town), loss="cost")
    names = branch_names(found.models[0].tree)
    assert (names["north.rain"], names["south.rain"], names["south.fog"]) == ("north.rain", "south.rain", "fog")


@pytest.mark.parametrize(
    ("value", "bounds", "text"),
    [
        (0.1234, PERCENT, "12.3 %"), (0.0012, PERCENT, "0.12 %"), (0.00012, PERCENT, "0.012 %"),
        (0.0, PERCENT, "0.0 %"), (12.345, (0.0, 40.0), "12.3"), (0.5, (0.0, math.inf), "0.5"),
    ],
)  # fmt: skip
def test_losses_are_written_in_their_unit(value: float, bounds: tuple[float, float], text: str) -> None:
    assert loss_text(value, bounds) == text


def test_an_interval_without_end_is_drawn_without_whisker() -> None:
    estimate = Estimate(2.0, -math.inf, math.inf, 0.95, 1, "")
    assert loss_interval(estimate, (-math.inf, math.inf)) == "2 [-inf, inf]"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("plain", ["plain"]),
        ("guided-complement-entropy", ["guided-complement-", "entropy"]),
        ("a" * 30, ["a" * 18, "a" * 12]),
        ("<b>&", ["&lt;b&gt;&amp;"]),
    ],
)
def test_long_names_are_broken_where_they_may(name: str, lines: Sequence[str]) -> None:
    assert wrapped_label(name).split("<br>") == list(lines)


def test_the_longest_names_are_cut_in_the_middle() -> None:
    shown = wrapped_label("x" * 50 + "end")
    assert "…" in shown
    assert shown.endswith("end")
    assert all(len(line) <= 18 for line in shown.split("<br>"))


def test_pairs_say_what_would_decide() -> None:
    def pair(low: float, value: float, more: int | None) -> Pair:
        return Pair("a", "b", Estimate(value, low, 0.3, 0.95, 9, ""), low <= 0, more)

    assert on_pair(pair(0.1, 0.2, 0)) == "yes"
    assert on_pair(pair(-0.1, 0.2, 1200)) == "undecided: about 1,200 more samples would probably decide"
    assert "no difference was seen" in on_pair(pair(-0.1, 0.0, None))
    assert "weights of the scenario are too uncertain" in on_pair(pair(-0.1, 0.1, None))
