"""Models under scenarios, from arrays and from a ledger."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.risk.indicators import RiskTensor, Scenario, indicator_tree, risk
from advrisk.risk.indicators.assessment import assess_indicators
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
    assert found.ship is None
    assert sum(one.probability_best or 0 for one in found.models) == pytest.approx(1)
    assert found.of("bad").probability_best == 0
    decided = compare_models(tensors(good=(0.01, 0.1, 0.1, 0.5), bad=(0.1, 0.4, 0.3, 0.9)), WEATHER)
    assert decided.ship == "good"
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
    assert (difference.high - difference.low) / 2 == pytest.approx(half, rel=1e-3)
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
    lines = list(found.flat())
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
