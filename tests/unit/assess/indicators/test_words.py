"""Indicators in words."""

import math
from dataclasses import replace

import pytest

from advrisk.assess.indicators.words import (
    branch_names,
    drivers,
    full_headline,
    in_scenario,
    loss_interval,
    loss_text,
    on_pair,
    on_result,
    on_risk,
    risk_headline,
    short_verdict,
    sureness,
    undecided,
)
from advrisk.core.estimate import Estimate
from advrisk.risk.decision import Pair
from advrisk.risk.indicators import Scenario
from advrisk.risk.indicators.comparison import ScenarioResult, compare_models
from advrisk.risk.indicators.tree import UNIFORM

from .towns import NASTY, PERCENT, TOWN, assessment, result_of, tensor


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    return result_of({"weak": 1.0, NASTY: 0.4, "middling": 0.95})


def test_attacks_are_spoken_of_where_there_are_some() -> None:
    told = " ".join(on_risk(assessment({"weak": 1.0})))
    assert "of attacks, the worst one on each sample counts" in told
    assert "a lower bound" in told
    calm = " ".join(on_risk(assessment({"weak": 1.0}, towns={"calm": {"wet": TOWN["wet"]}})))
    assert "averaged" in calm
    assert "attack" not in calm


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
        (0.0, PERCENT, "0.0 %"), (12.345, (0.0, 40.0), "12.3"), (0.5, (0.0, math.inf), "0.500"),
        (1234.5, (0.0, math.inf), "1,234"),
    ],
)  # fmt: skip
def test_losses_are_written_in_their_unit(value: float, bounds: tuple[float, float], text: str) -> None:
    assert loss_text(value, bounds) == text


def test_an_interval_without_end_is_said_to_be_unknown() -> None:
    estimate = Estimate(2.0, -math.inf, math.inf, 0.95, 1, "")
    assert loss_interval(estimate, (-math.inf, math.inf)) == "2.00 [unknown, unknown]"


def test_pairs_say_what_would_decide() -> None:
    def pair(low: float, value: float, more: int | None) -> Pair:
        return Pair("a", "b", Estimate(value, low, 0.3, 0.95, 9, ""), low <= 0, more)

    assert on_pair(pair(0.1, 0.2, 0)) == "decided"
    assert on_pair(pair(-0.1, 0.2, 1200)) == "undecided: about 1,200 more samples would probably decide"
    assert "the difference is 0" in on_pair(pair(-0.1, 0.0, None))
    assert "weights of the scenario are too uncertain" in on_pair(pair(-0.1, 0.1, None))


def test_beside_the_headline_stands_what_would_decide() -> None:
    alike = result_of({"a": 0.5, "b": 0.5})
    told = on_result(alike)
    assert "a and b, undecided: the difference is 0, so the number of samples that would decide is unknown." in told
    assert told[-1] == "300 samples."
    clear = on_result(result_of({"weak": 1.0, "strong": 0.2}))
    assert not any("undecided" in sentence for sentence in clear)


def test_the_summary_says_how_sure_the_least_risk_is_and_what_is_open() -> None:
    found = assessment({"a": 0.97, "b": 1.0})
    best = found.results[0].models[0]
    amount = loss_interval(best.risk, PERCENT)
    assert sureness(found)[0].startswith(
        f"In the scenario town, {best.model}: risk {amount} (95 % interval), least in "
    )
    (pair,) = found.results[0].pairs
    assert pair.undecided
    assert pair.more_samples
    assert undecided(found) == [
        f"town: a and b, undecided: about {pair.more_samples:,} more samples would probably decide."
    ]
    (told,) = undecided(replace(found, samples_left=0))
    assert told == "town: a and b, undecided: these samples do not decide, and the data set has no more."


def test_corruptions_that_count_alike_are_no_scenario_of_the_user() -> None:
    found = assessment({"a": 0.5, "b": 0.5}, towns={UNIFORM: TOWN})
    assert sureness(found) == []
    assert undecided(found) == ["With all corruptions equally weighted, 1 of 1 pair of models."]
    assert full_headline(found.results[0]).startswith(
        "With all corruptions equally weighted: Undecided between a and b"
    )
    decided = full_headline(assessment({"a": 0.1, "b": 1.0}, towns={UNIFORM: TOWN}).results[0])
    assert decided.startswith("With all corruptions equally weighted, a has the least risk of 2 models: ")
