"""Models under scenarios, from arrays and from a ledger."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from advrisk.assess.indicators.assessment import assess_indicators, robustness
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.risk.indicators import MissingArmsError, RiskTensor, Scenario, indicator_tree, risk
from advrisk.risk.indicators.comparison import compare_models

from .conftest import Answered

Write = Callable[..., Ledger]
TOWN = Scenario.from_mapping(
    "town", {"wet": {"weight": 0.4, "of": {"rain": 0.5, "fog": 0.5}}, "bad": {"weight": 0.1, "of": ["pgd", "square"]}}
)


def tensors(n: int = 200, **chances: tuple[float, ...]) -> dict[str, RiskTensor]:
    """Models that fail so often under clean, rain, fog and pgd; what is hard for one is hard for all."""
    rng = np.random.default_rng(0)
    hard = rng.random((n, 4))
    return {
        model: RiskTensor.from_arrays(
            (hard < chance).astype(float),
            arms=["clean", "rain", "fog", "pgd"],
            kind=["clean", "corruption", "corruption", "attack"],
            label=rng.integers(2, size=n),
            ranges={"loss": (0, 1)},
            model=model,
        )
        for model, chance in chances.items()
    }


WEATHER = Scenario.from_mapping("weather", {"rain": 0.4, "fog": 0.2, "pgd": 0.1})


def test_models_are_ranked_and_told_apart_where_that_can_be() -> None:
    found = compare_models(
        tensors(good=(0.01, 0.1, 0.1, 0.5), twin=(0.01, 0.1, 0.11, 0.5), bad=(0.1, 0.4, 0.3, 0.9)), WEATHER
    )
    assert [one.model for one in found.models] == ["good", "twin", "bad"]
    assert found.of("bad").verdict == "more risk than good, twin"
    assert found.of("good").verdict == "undecided against twin"
    assert found.least_bad is None
    assert sum(one.probability_best or 0 for one in found.models) == pytest.approx(1)
    assert found.of("bad").probability_best == 0
    decided = compare_models(tensors(good=(0.01, 0.1, 0.1, 0.5), bad=(0.1, 0.4, 0.3, 0.9)), WEATHER)
    assert decided.least_bad == "good"
    assert decided.of("good").verdict == "least risk"
    alone = compare_models(tensors(good=(0.01, 0.1, 0.1, 0.5)), WEATHER)
    assert alone.of("good").verdict == "no other model to compare with"
    assert alone.of("good").probability_best is None


def test_differences_are_paired() -> None:
    made = tensors(a=(0.1, 0.5, 0.5, 0.9), b=(0.1, 0.6, 0.5, 0.9))
    branch = compare_models(made, WEATHER).branches["rain"]
    values = [made[model].data.values[0, :, 1, 0] for model in "ab"]
    each = values[1] - values[0]
    half = 1.972 * each.std(ddof=1) / np.sqrt(200)
    difference = branch.difference("b", "a")
    assert difference.value == pytest.approx(each.mean())
    assert branch.standard_errors("b", "a")[0] == pytest.approx(half / 1.972, rel=1e-3)
    assert half < (difference.high - difference.low) / 2 < 1.15 * half  # a sample that was not seen adds about 1/n
    assert not branch.undecided("b", "a")
    same = compare_models(made, WEATHER).branches["fog"].difference("a", "b")
    assert same.low < same.value == 0 < same.high, "never sure, though no sample tells them apart"


def test_uncertain_weights_cancel_where_models_do_not_differ_in_them() -> None:
    made = tensors(a=(0.1, 0.5, 0.5, 0.9), b=(0.1, 0.5, 0.5, 0.9))
    unsure = Scenario.from_mapping("s", {"rain": {"beta": [5, 5]}})
    found = compare_models(made, unsure)
    assert found.branches[""].standard_errors("a", "b") == (0.0, 0.0)
    assert found.of("a").tree.weights_part > 0.5
    unlike = compare_models(tensors(a=(0.1, 0.5, 0.5, 0.9), b=(0.1, 0.8, 0.5, 0.9)), unsure)
    assert unlike.branches[""].standard_errors("a", "b")[1] > 0.03


def test_what_uncertain_weights_do_to_a_difference_is_in_its_interval() -> None:
    """a and b differ in rain alone, so the difference is the share of rain times a number."""
    made = tensors(2000, a=(0.1, 0.2, 0.5, 0.9), b=(0.1, 0.8, 0.5, 0.9))
    known = compare_models(made, Scenario.from_mapping("s", {"rain": 0.5})).branches[""].difference("b", "a")
    unsure = compare_models(made, Scenario.from_mapping("s", {"rain": {"beta": [5, 5]}})).branches[""]
    found = unsure.difference("b", "a")
    of_weights = 2 * known.value * stats.beta(5, 5).std()
    half = np.hypot(known.high - known.value, stats.t.ppf(0.975, 1999) * of_weights)
    assert found.high - found.value == pytest.approx(half, rel=0.03)
    assert found.high - found.value > 5 * (known.high - known.value), "the weights are most of it"


def test_how_probable_it_is_that_a_model_is_best() -> None:
    """Of two, the normal law says it: of the mean difference over its standard error."""
    made = tensors(a=(0.1, 0.50, 0.5, 0.9), b=(0.1, 0.52, 0.5, 0.9))
    branch = compare_models(made, WEATHER).branches["rain"]
    each = made["b"].data.values[0, :, 1, 0] - made["a"].data.values[0, :, 1, 0]
    z = each.mean() / (each.std(ddof=1) / np.sqrt(each.size))
    assert 1 < z < 2.5, "undecided, or nearly so"
    assert branch.probability_best["a"] == pytest.approx(stats.norm.cdf(z), abs=0.015)
    assert sum(branch.probability_best.values()) == pytest.approx(1)


def test_a_difference_among_few_samples_of_great_weight_has_their_interval() -> None:
    """Of a loss without range: Student's for 4 samples at night, and for 96 by day, put together."""
    rng = np.random.default_rng(3)
    night = np.arange(100) < 4
    values = rng.normal(size=(2, 100, 2))
    made = {
        name: RiskTensor.from_arrays(
            values[place],
            arms=["rain", "fog"],
            kind=["corruption"] * 2,
            strata={"light": np.where(night, "night", "day").tolist()},
        )
        for place, name in enumerate("ab")
    }
    parts = {name: {"weight": 0.5, "where": {"light": name}, "arms": ["rain"]} for name in ("night", "day")}
    branch = compare_models(made, Scenario.from_mapping("s", parts)).branches[""]
    each = values[0, :, 0] - values[1, :, 0]
    halves = [0.5 * stats.t.ppf(0.975, some.size - 1) * stats.sem(some) for some in (each[night], each[~night])]
    found = branch.difference("a", "b")
    assert found.value == pytest.approx((each[night].mean() + each[~night].mean()) / 2)
    assert found.high - found.value == pytest.approx(np.hypot(*halves))


def test_models_that_do_not_differ_on_the_one_sample_at_night_may_still_differ_there() -> None:
    night = np.arange(100) < 1
    same = {
        name: RiskTensor.from_arrays(
            np.zeros((100, 2)),
            arms=["clean", "rain"],
            kind=["clean", "corruption"],
            strata={"light": np.where(night, "night", "day").tolist()},
            ranges={"loss": (0, 1)},
        )
        for name in "ab"
    }
    scenario = Scenario.from_mapping("s", {"rain": {"weight": 0.2, "where": {"light": "night"}}})
    found = compare_models(same, scenario).branches[""].difference("a", "b")
    assert 0.2 <= found.high < 0.3
    free = {name: RiskTensor(one.data.assign_coords(high=("loss", [np.inf]))) for name, one in same.items()}
    assert compare_models(free, scenario).branches[""].difference("a", "b").high == np.inf


def test_only_common_samples_count() -> None:
    made = tensors(40, a=(0.1, 0.5, 0.5, 0.9), b=(0.1, 0.6, 0.5, 0.9))
    values = made["a"].data.values.copy()
    values[0, 3, 2, 0] = np.nan
    holed = RiskTensor(made["a"].data.copy(data=values))
    shuffled = RiskTensor(made["b"].data.isel(sample=np.random.default_rng(1).permutation(40)[:39]))
    found = compare_models({"a": holed, "b": shuffled}, WEATHER)
    assert len(found.samples) == 39 - ("3" in shuffled.samples)
    assert found.n_unfinished == int("3" in shuffled.samples)
    direct = risk(made["b"].select(sample=found.samples), WEATHER)
    assert found.of("b").risk.value == pytest.approx(direct.value)


def test_models_under_other_arms_are_not_compared() -> None:
    made = tensors(a=(0.1, 0.5, 0.5, 0.9), b=(0.1, 0.6, 0.5, 0.9))
    fewer = {"a": made["a"], "b": made["b"].select(arm=["clean", "rain", "pgd"])}
    all_arms = Scenario.from_mapping("s", {"x": {"weight": 1, "arms": ["rain", "fo*", "rai*"]}})
    with pytest.raises(RiskError, match="no arm fits"):
        compare_models(fewer, all_arms)
    some = Scenario.from_mapping("s", {"x": {"weight": 1, "arms": ["*"], "aggregate": "mean"}})
    with pytest.raises(RiskError, match="b has no answers under fog, but other models have"):
        compare_models(fewer, some)
    with pytest.raises(RiskError, match="have no sample in common"):
        compare_models({"a": made["a"].select(sample=["1"]), "b": made["b"].select(sample=["2"])}, WEATHER)
    with pytest.raises(RiskError, match="there is no model"):
        compare_models({}, WEATHER)
    with pytest.raises(RiskError, match="no model 'c' was compared"):
        compare_models(made, WEATHER).branches[""].difference("a", "c")


def test_an_assessment_of_a_run(write: Write) -> None:
    given = Answered(n=30)
    given.arms["pgd"]["keep"] = "smallest"
    given.outcome["net", "fog-1", 0, 3] = "error"
    given.missing.add(("other", "rain-1", 2, 5))
    for sample in range(8):
        given.outcome["net", "pgd", 0, sample + 10] = "success"
    ledger = write(given)
    found = assess_indicators(ledger, [TOWN], ["misclassified", "confidence-drop"], seed=3)
    assert found.scenarios == ("town",)
    assert found.losses == ("misclassified", "confidence-drop")
    result = found.of("town")
    assert (len(result.samples), result.n_unfinished, result.n_without_verdict) == (28, 1, 1)
    assert any("not finished, and left out: 1 sample" in note for note in found.notes)
    assert any("gave no verdict: 1 sample" in note for note in found.notes)
    assert found.tensors is not None
    own = indicator_tree(found.tensors["net"].select(sample=result.samples), TOWN, loss="misclassified")
    assert result.of("net").tree.value == own.value
    assert set(result.of("net").by_class) == {0, 1, 2}
    assert set(result.of("net").by_stratum["light"]) == {"day", "night"}
    assert set(found.arms["misclassified"]["net"]) == set(given.arms)
    (net, _) = found.robustness
    assert (net.model, net.norm, net.eps) == ("net", "linf", 0.2)
    assert net.mean_distance is not None
    assert net.mean_distance.value == pytest.approx(0.05)
    assert net.adversarial_risk is not None
    assert net.adversarial_risk.value == pytest.approx(8 / 30)
    assert found.measures == {}


def test_everything_can_be_written_down(write: Write) -> None:
    unsure = Scenario.from_mapping(
        "unsure", {"rain": {"beta": [2, 8]}, "bad": {"weight": 0.1, "of": ["pgd", "square"]}}
    )

    def free(answers: Any) -> Any:
        return 3.0 * answers.confidence

    found = assess_indicators(write(Answered(n=30)), [TOWN, unsure], ["misclassified", free])
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert [one["scenario"] for one in plain["results"]] == ["town", "town", "unsure", "unsure"]
    assert plain["results"][1]["range"] == [None, None]
    lines = found.rows()
    assert len({tuple(line) for line in lines}) == 1, "the same columns in the same order"
    whole = [line for line in lines if line["path"] == "" and line["scenario"] == "town"]
    assert {line["model"] for line in whole} == {"net", "other"}
    assert whole[0]["value"] == found.of("town").models[0].risk.value
    assert {line["kind"] for line in lines} == {"branch", "class", "light"}
    again = assess_indicators(Ledger.open(found.tensors.ledger.path), [TOWN, unsure], ["misclassified", free])  # type: ignore[union-attr]
    assert again.as_dict() == found.as_dict()


def test_without_a_scenario_corruptions_count_alike(write: Write) -> None:
    found = assess_indicators(write(Answered()))
    assert found.scenarios == ("uniform",)
    assert found.notes[0] == "No scenario was stated: all corruptions count alike. This describes no deployment."
    with pytest.raises(RiskError, match="no result of town"):
        found.of("town")


def test_weights_of_samples_count(write: Write) -> None:
    weight = [1.0 + n for n in range(12)]
    found = assess_indicators(write(Answered(weight=weight)), [TOWN])
    own = found.of("town").of("net").tree.at("wet.fog").value.value
    tensor = found.tensors["net"]  # type: ignore[index]
    column = tensor.data.sel(loss="misclassified", arm="fog-1", repeat=0).values
    assert own == pytest.approx(np.average(column, weights=weight))
    assert any("Distances in linf are left out: samples of different weight" in note for note in found.notes)


def test_measures_stand_beside_the_risks(write: Write) -> None:
    ledger = write(Answered())
    cell, samples = ["net/clean/0"] * 3, ["s000", "s001", "s002"]
    rows = {"cell": cell, "sample": samples, "measure": ["clever"] * 3, "value": [0.1, 0.2, 0.3]}
    ledger.append({"measures": table_from("measures", rows)})
    found = assess_indicators(Ledger.open(ledger.path), [TOWN]).measures["net"]["clever"]
    assert (found.value, found.n) == (pytest.approx(0.2), 3)
    assert (found.high - 0.2) == pytest.approx(4.302653 * 0.1 / np.sqrt(3))


def test_what_stands_beside_the_risks_is_about_what_was_asked(write: Write) -> None:
    given = Answered()
    given.arms["pgd"]["keep"] = "smallest"
    given.outcome["net", "square", 0, 2] = given.outcome["other", "square", 0, 2] = "success"
    ledger = write(given)
    cells = [f"{model}/clean/0" for model in ("net", "other") for _ in range(3)]
    rows = {"cell": cells, "sample": ["s000", "s001", "s002"] * 2, "measure": ["clever"] * 6, "value": [0.1] * 6}
    ledger.append({"measures": table_from("measures", rows)})
    ledger = Ledger.open(ledger.path)
    assert set(assess_indicators(ledger, [TOWN]).measures) == {"net", "other"}
    one = assess_indicators(ledger, [TOWN], models=["net"])
    assert set(one.measures) == {"net"}
    assert {row.model for row in one.robustness} == {"net"}
    rain = Scenario.from_mapping("rain", {"rain": 1})
    some = assess_indicators(ledger, [rain], arms=["rain-*", "pgd"])
    assert [(row.eps, row.adversarial_risk.value) for row in some.robustness if row.adversarial_risk] == [
        (0.1, 0.0)
    ] * 2
    assert assess_indicators(ledger, [rain], arms=["rain-*"]).robustness == ()


def test_measures_are_averaged_by_the_weights_of_samples(write: Write) -> None:
    ledger = write(Answered(weight=[6.0, 3.0, 1.0] + [1.0] * 9))
    rows = {"cell": ["net/clean/0"] * 3, "sample": ["s000", "s001", "s002"], "measure": ["clever"] * 3}
    ledger.append({"measures": table_from("measures", rows | {"value": [0.1, 0.2, 0.9]})})
    found = assess_indicators(Ledger.open(ledger.path), [TOWN]).measures["net"]["clever"]
    assert found.value == pytest.approx((0.6 + 0.6 + 0.9) / 10)


def test_a_fixed_size_is_no_smallest_distance(write: Write) -> None:
    """pgd goes as far as eps lets it: that its successes are eps away says nothing of how near one could be."""
    given = Answered()
    for sample in range(4):
        given.outcome["net", "pgd", 0, sample] = "success"
    (net, _), notes = robustness(write(given))
    assert net.mean_distance is None
    assert net.adversarial_risk is not None
    assert net.adversarial_risk.value == pytest.approx(4 / 12)
    assert any("There is no mean distance in linf: all attacks have an eps" in note for note in notes)
    given.arms["square"]["eps"] = None
    given.outcome["net", "square", 0, 5] = given.outcome["net", "square", 0, 6] = "success"
    (net, other), notes = robustness(write(given, "without"))
    assert net.mean_distance is not None
    assert (net.mean_distance.estimate.n, net.mean_distance.n_resisted) == (6, 6), "the nearest success of any"
    assert other.mean_distance is None
    assert notes == ()


@pytest.mark.parametrize(("eps", "wrong"), [(0.05, 2), (0.0499, 0)])
def test_a_success_at_eps_is_within_it(write: Write, eps: float, wrong: int) -> None:
    given = Answered()
    given.arms["pgd"]["eps"] = given.arms["square"]["eps"] = eps
    given.outcome["net", "pgd", 0, 1] = given.outcome["net", "square", 0, 2] = "success"  # at 0.05
    (net, _), _ = robustness(write(given))
    assert net.adversarial_risk is not None
    assert net.adversarial_risk.value == pytest.approx(wrong / 12)


def test_a_scenario_that_cannot_be_answered_leaves_the_others_alone(write: Write) -> None:
    ledger = write(Answered())
    lost = Scenario.from_mapping("lost", {"snow": 0.5})
    dusk = Scenario.from_mapping("dusk", {"rain": {"weight": 0.5, "where": {"light": "dusk"}}})
    found = assess_indicators(ledger, [lost, TOWN, dusk])
    assert found.scenarios == ("town",)
    assert found.results[0].as_dict() == assess_indicators(ledger, [TOWN]).results[0].as_dict()
    assert any("The scenario lost is left out: lost.snow: no arm fits 'snow'" in note for note in found.notes)
    assert any("The scenario dusk is left out: dusk.rain.where: no sample has light" in note for note in found.notes)
    assert list(found.unanswered) == ["lost", "dusk"]
    assert found.unanswered["lost"].startswith("lost.snow: no arm fits 'snow'")
    with pytest.raises(MissingArmsError, match="no arm fits 'snow'"):
        assess_indicators(ledger, [lost, dusk])


def test_the_class_is_a_stratum(write: Write) -> None:
    given = Answered(n=30)
    ledger = write(given)
    tree = {"rain": {"weight": 0.5, "where": {"class": 1}}, "strata": {"class": {0: 0.2, 1: 0.5, 2: 0.3}}}
    found = assess_indicators(ledger, [Scenario.from_mapping("s", tree)])
    tensor = found.tensors["net"]  # type: ignore[index]
    losses = tensor.data.sel(loss="misclassified", arm="clean", repeat=0).values
    means = [losses[given.label == label].mean() for label in range(3)]
    own = found.of("s").of("net").tree
    assert own.at("clean").value.value == pytest.approx(np.average(means, weights=[0.2, 0.5, 0.3]))
    rain = tensor.data.sel(loss="misclassified", arm="rain-1").values[given.label == 1]
    assert own.at("rain").value.value == pytest.approx(rain.mean())
    assert set(found.of("s").of("net").by_stratum) == {"light"}, "classes have their own place"
    with pytest.raises(RiskError, match="no sample has class = '7'"):
        tensor.select(where={"class": 7})
    named = tensor.select()
    named = RiskTensor(named.data.assign_coords({"stratum.class": ("sample", ["bus"] * 30)}))
    assert named.in_strata({"class": "bus"}).all(), "the data's own stratum of that name stands"
