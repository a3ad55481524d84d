"""The first sentence: what is required of the least bad model, and which question leads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.headline import headline
from advrisk.assess.gate.records import GateResult, RequirementResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.selection.answer import answer, leading
from advrisk.assess.selection.headline import damage_headline, scenario_headline
from advrisk.core.plain import plain_fields
from advrisk.core.sections import Unanswered
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import ScenarioResult, compare_models
from tests.damages import BETTER, OPEN, TRADE_OFF, assessed
from tests.findings import findings_of


def gate(**verdicts: str) -> GateResult:
    """`std="fail"`: of one requirement for each of these models."""
    return GateResult(
        "run",
        tuple(
            RequirementResult(f"robust_accuracy.{model} at 8/255 >= 50 %", verdict, "study", None, 0.5, "why")  # type: ignore[arg-type]
            for model, verdict in verdicts.items()
        ),
    )


def test_where_no_model_meets_a_requirement_that_is_said_first() -> None:
    assert damage_headline(assessed(**BETTER), gate(std="fail", adv="fail")) == (
        "None of these 2 models meets robust accuracy at 8/255 >= 50 %; adv is the least bad of 2 models: robust "
        "accuracy 42.0 % at 8/255; clean accuracy 92.0 %, the highest of these."
    )
    assert damage_headline(assessed(**TRADE_OFF), gate(std="fail", adv="fail")).startswith(
        "None of these 2 models meets robust accuracy at 8/255 >= 50 %; a trade-off: of 2 models adv "
    )


@pytest.mark.parametrize(
    ("verdicts", "ending"),
    [
        ({"std": "pass", "adv": "pass"}, "; adv meets every stated requirement."),
        ({"std": "fail", "adv": "pass"}, "; adv meets every stated requirement, std fails {rule}."),
        ({"std": "pass", "adv": "fail"}, "; adv fails {rule}, std meets every stated requirement."),
        ({"std": "undecided", "adv": "fail"}, "; adv fails {rule}."),
        ({"std": "fail"}, "; no requirement is stated for adv, std fails {rule}."),
        ({"std": "pass", "adv": "undecided"}, "; undecided whether adv meets {rule}."),
    ],
)
def test_which_model_fails_which_requirement(verdicts: dict[str, str], ending: str) -> None:
    said = damage_headline(assessed(**BETTER), gate(**verdicts))
    assert said.endswith(ending.format(rule="robust accuracy at 8/255 >= 50 %"))


@pytest.mark.parametrize(
    ("verdicts", "ending"),
    [
        ({"adv": "undecided"}, "; undecided whether adv meets {rule}."),
        ({"adv": "undecided", "std": "undecided"}, "; undecided whether adv meets {rule} and std meets {rule}."),
        ({"adv": "undecided", "std": "fail"}, "; std fails {rule}, undecided whether adv meets {rule}."),
        ({"adv": "pass"}, "; adv meets every stated requirement, none is stated for std."),
        ({"other": "pass"}, "; no requirement is stated for {both}."),
        ({"adv": "pass", "std": "pass"}, "; every stated requirement is met."),
    ],
)
def test_whose_requirement_it_is_where_no_model_is_named(verdicts: dict[str, str], ending: str) -> None:
    found = assessed(**OPEN)
    both = " and ".join(row.model for row in found.models)
    said = damage_headline(found, gate(**verdicts))
    assert said.endswith(ending.format(rule="robust accuracy at 8/255 >= 50 %", both=both))


def in_town(harm: Mapping[str, float], name: str = "town") -> ScenarioResult:
    rng = np.random.default_rng(0)
    tensors = {
        model: RiskTensor.from_arrays(
            (rng.random((400, 2)) < share).astype(float), arms=["clean", "rain"], kind=["clean", "corruption"],
            label=np.zeros(400, int), model=model, ranges={"loss": (0, 1)},
        )
        for model, share in harm.items()
    }  # fmt: skip
    return compare_models(tensors, Scenario.from_mapping(name, {"wet": {"weight": 0.5, "arms": ["rain"]}}))


def test_a_stated_scenario_leads_and_damage_comes_after() -> None:
    damage = assessed(**BETTER)
    result = in_town({"adv": 0.6, "std": 0.05})
    said = answer(damage, [result], gate(std="fail", adv="fail")).sentences
    assert said[0].startswith(
        "None of these 2 models meets robust accuracy at 8/255 >= 50 %; in the scenario town (loss: loss), std "
    )
    assert said[0].endswith("; robust accuracy 0.0 % at 8/255; clean accuracy 92.0 %, the highest of these.")
    assert said[1].startswith("By damage: adv is the least bad of 2 models")
    assert answer(damage).headline == headline(damage)
    assert scenario_headline(result).startswith(
        "In the scenario town (loss: loss), std has the least risk of 2 models: "
    )
    even = in_town({"adv": 0.3, "std": 0.3})
    assert scenario_headline(even, damage).startswith("In the scenario town (loss: loss), undecided between ")


X, Y = {"adv": 0.05, "std": 0.6}, {"adv": 0.6, "std": 0.05}


def test_scenarios_that_disagree_say_so_first_and_name_no_model() -> None:
    town, night = in_town(X), in_town(Y, "night")
    found = answer(assessed(**BETTER), [town, night])
    assert found.headline.startswith("The scenarios disagree: town favours adv (risk ")
    assert "), night favours std (risk " in found.headline
    assert (found.least_bad, found.ship, plain_fields(found)["decided"]) == (None, None, False)
    assert [one.split(",")[0] for one in found.sentences[1:3]] == [
        "In the scenario town (loss: loss)", "In the scenario night (loss: loss)",
    ]  # fmt: skip
    required = answer(assessed(**BETTER), [town, night], gate(std="fail", adv="fail"))
    assert required.headline.startswith("None of these 2 models meets robust accuracy at 8/255 >= 50 %; the scenarios ")
    assert sum("None of these" in one for one in required.sentences) == 1
    indicators = IndicatorAssessment((town, night), {}, (), {}, 0.95)
    assert leading(findings_of(damage=assessed(**BETTER), indicators=indicators)) == found, "the report says the same"


def test_a_scenario_that_does_not_decide_leaves_the_others_without_a_model() -> None:
    found = answer(Unanswered("no attack"), [in_town(X), in_town({"adv": 0.3, "std": 0.3}, "night")])
    assert found.headline.startswith("The scenarios do not settle on one model: town favours adv (risk ")
    assert ", night is undecided between " in found.headline
    assert found.least_bad is None


def test_a_scenario_without_an_answer_leaves_the_others_without_a_model() -> None:
    found = answer(assessed(**BETTER), [in_town(X)], gate(adv="pass", std="fail"), left_out={"night": "no arm fits."})
    assert found.headline.startswith("The scenario night has no answer, so no model is named: no arm fits; std fails ")
    assert found.sentences[1].startswith("In the scenario town (loss: loss), adv has the least risk")
    assert "every stated requirement" not in found.sentences[1], "said once"
    assert (found.least_bad, found.ship, found.decided, found.exit_code) == (None, None, False, 4)
    both = answer(assessed(**BETTER), [in_town(X)], left_out={"night": "no arm fits", "dusk": "no sample"})
    assert both.headline == "The scenarios night and dusk have no answer, so no model is named: no arm fits."


def test_scenarios_that_agree_name_the_model() -> None:
    found = answer(assessed(**BETTER), [in_town(X), in_town(X, "night")], gate(adv="pass"))
    assert found.headline.startswith("In the scenario town (loss: loss), adv has the least risk")
    assert (found.least_bad, found.ship, found.requirements) == ("adv", "adv", "met")


@pytest.mark.parametrize(
    ("verdicts", "requirements", "ship"),
    [
        ({}, None, "adv"),
        ({"std": "pass", "adv": "pass"}, "met", "adv"),
        ({"std": "fail", "adv": "pass"}, "met", "adv"),
        ({"std": "pass", "adv": "fail"}, "not met", None),
        ({"std": "fail", "adv": "fail"}, "not met", None),
        ({"std": "pass", "adv": "undecided"}, "undecided", None),
        ({"std": "fail"}, None, "adv"),
    ],
)
def test_machines_are_told_no_model_that_fails_what_is_required(
    verdicts: dict[str, str], requirements: str | None, ship: str | None
) -> None:
    found = answer(assessed(**BETTER), gate=gate(**verdicts))
    told = plain_fields(found)
    assert (told["least_bad"], told["requirements"], told["ship"]) == ("adv", requirements, ship)
    assert told["headline"] == damage_headline(assessed(**BETTER), gate(**verdicts))


def test_a_requirement_of_some_models_is_met_where_no_model_is_named() -> None:
    for verdicts, told in (
        ({"std": "pass"}, "met"),
        ({"std": "fail"}, "undecided"),
        ({"std": "undecided"}, "undecided"),
    ):
        assert answer(assessed(**OPEN), gate=gate(**verdicts)).requirements == told


def test_nothing_is_shipped_by_a_run_that_is_not_done() -> None:
    found = answer(assessed(**BETTER), unfinished="3 of 8 cells")
    assert found.headline == "Decide nothing yet: the run is not finished (3 of 8 cells are done)."
    assert (found.least_bad, found.ship, plain_fields(found)["decided"]) == ("adv", None, False)


ONE = {"broken": {"adv": 50}, "wrong": {"adv": 8}}
NOT_CHECKED = Unanswered("this is a part.")


@pytest.mark.parametrize(
    ("models", "required", "more", "exit_code"),
    [
        (BETTER, None, {}, 0),
        (BETTER, {"adv": "pass"}, {}, 0),
        (BETTER, {"std": "fail"}, {}, 0),
        (BETTER, {"adv": "fail"}, {}, 1),
        (BETTER, {"adv": "undecided"}, {}, 4),
        (BETTER, NOT_CHECKED, {}, 4),
        (OPEN, None, {}, 4),
        (OPEN, {"adv": "pass", "std": "pass"}, {}, 4),
        (OPEN, {"adv": "fail", "std": "fail"}, {}, 1),
        (OPEN, {"adv": "fail"}, {}, 4),
        (OPEN, NOT_CHECKED, {}, 4),
        (ONE, None, {}, 0),
        (ONE, {"adv": "pass"}, {}, 0),
        (ONE, {"adv": "fail"}, {}, 1),
        (ONE, {"adv": "undecided"}, {}, 4),
        (ONE, NOT_CHECKED, {}, 4),
        (BETTER, None, {"unfinished": "3 of 8 cells"}, 4),
        (BETTER, {"adv": "fail"}, {"unfinished": "3 of 8 cells"}, 4),
        (ONE, None, {"unfinished": "3 of 8 cells"}, 4),
        (ONE, None, {"lost": "rain is missing"}, 4),
        (BETTER, {"adv": "fail", "std": "fail"}, {"lost": "rain is missing"}, 4),
        (None, None, {}, 4),
    ],
)
def test_what_select_exits_with(
    models: Any, required: Unanswered | dict[str, str] | None, more: dict[str, str], exit_code: int
) -> None:
    damage = Unanswered("no attack has a norm") if models is None else assessed(**models)
    found = answer(damage, gate=gate(**required) if isinstance(required, dict) else required, **more)
    assert found.exit_code == exit_code
    assert found.ship is None or exit_code == 0, "what is shipped is decided"


def test_scenarios_that_disagree_are_undecided() -> None:
    assert answer(Unanswered("no attack"), [in_town(X), in_town(Y, "night")]).exit_code == 4
    assert answer(Unanswered("no attack"), [in_town(X), in_town(X, "night")]).exit_code == 0


@pytest.mark.parametrize("models", [BETTER, OPEN, ONE])
def test_requirements_that_were_not_checked_are_not_met(models: Any) -> None:
    damage = assessed(**models)
    found = answer(damage, gate=Unanswered("this is a part."))
    assert (found.requirements, found.ship, found.least_bad) == ("not checked", None, damage.least_bad)
    assert found.headline == (
        f"{headline(damage).rstrip('.')}; what the study requires (gate) is not checked: this is a part."
    )
    lost = leading(
        findings_of(
            damage=damage,
            gate=Unanswered("this is a part."),
            indicators=Unanswered("rain is missing"),
            scenarios_stated=True,
        )
    )
    assert lost.headline == (
        "The study's scenarios have no answer: rain is missing; what the study requires (gate) is not checked: this is "
        "a part."
    )


def test_a_run_without_distances_and_scenarios_says_why_no_model_is_named() -> None:
    found = leading(findings_of(damage=Unanswered("this run holds no attack with a norm.")))
    assert found.headline == "The evidence names no model: this run holds no attack with a norm."
    assert (found.least_bad, found.exit_code) == (None, 4)


def test_damage_leads_where_it_was_asked_for_and_scenarios_without_an_answer_say_why() -> None:
    damage, indicators = assessed(**BETTER), IndicatorAssessment((in_town(Y),), {}, (), {}, 0.95)
    assert leading(findings_of(damage=damage, indicators=indicators)).least_bad == "std"
    asked = leading(findings_of(damage=damage, indicators=indicators, by_damage=True))
    assert (asked.least_bad, asked.headline) == ("adv", headline(damage))
    indicators = replace(indicators, results=(in_town(X),), unanswered={"night": "no arm fits"})
    part = leading(findings_of(damage=damage, indicators=indicators, scenarios_stated=True))
    assert part.headline == "The scenario night has no answer, so no model is named: no arm fits."
    lost = leading(findings_of(damage=damage, indicators=Unanswered("rain is missing."), scenarios_stated=True))
    assert lost.headline == "The study's scenarios have no answer: rain is missing."
    assert lost.least_bad is None


def test_where_each_model_fails_something_else_none_meets_every_requirement() -> None:
    results = (
        RequirementResult("clean_accuracy.adv >= 90 %", "fail", "study", None, 0.9, "why"),
        RequirementResult("robust_accuracy.std at 8/255 >= 10 %", "fail", "study", None, 0.1, "why"),
    )
    said = damage_headline(assessed(**TRADE_OFF), GateResult("run", results))
    assert said.startswith("None of these 2 models meets every stated requirement (")
    assert "adv fails clean accuracy >= 90 %" in said
    assert "std fails robust accuracy at 8/255 >= 10 %" in said
