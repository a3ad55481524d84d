"""Figures of indicators: what is drawn is what was found."""

from dataclasses import replace

import pytest

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.figures import arm_losses, branch_bars, grouped_bars, sunburst
from advrisk.core.estimate import Estimate
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.risk.indicators.tree import Indicator

from .towns import ARMS, NASTY, PERCENT, assessment, result_of, tensor


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


def test_the_heat_map_holds_the_mean_loss_of_every_arm() -> None:
    found = assessment({"weak": 1.0, "strong": 0.4})
    (trace,) = arm_losses(found, "cost", PERCENT)["data"]
    assert trace["x"] == ["strong", "weak"]  # least risk first
    for row, arm in zip(trace["z"], trace["y"], strict=True):
        assert row == [found.arms["cost"][model][arm].value for model in trace["x"]]
    assert set(trace["y"]) == set(ARMS)
    assert (trace["zmin"], trace["zmax"]) == (0.0, 1.0)


def test_arms_stand_by_kind_and_numbers_in_names_by_their_size() -> None:
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
