"""Damage in one sentence: the least bad model and how bad it is, or why the evidence names none."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.assessment import DamageAssessment, assess_distances
from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.headline import headline
from advrisk.assess.damage.words import findings, size_columns, what_would_decide
from advrisk.core.estimate import Estimate
from advrisk.report.notebook import notebook_html
from advrisk.risk.conflicts import Stated
from advrisk.risk.decision import Pair
from advrisk.risk.evasion import threshold
from advrisk.study import DamageSpec
from tests.damages import BETTER, EPS, OPEN, TRADE_OFF, assessed


def test_robust_accuracy_is_the_share_that_is_correct_and_not_broken() -> None:
    found = assessed(**OPEN)
    rates = {row.model: (row.robust_accuracy[EPS].value, row.success_ratio[EPS].value) for row in found.models}
    assert rates == {"std": (0.0, 1.0), "adv": (pytest.approx(0.2), 0.8)}
    for row in found.models:
        robust, broken = row.robust_accuracy[EPS], row.success_ratio[EPS]
        assert (robust.low, robust.high) == pytest.approx((1 - broken.high, 1 - broken.low)), "the same interval"
    assert size_columns(found) == {"robust accuracy at 8/255": EPS}


def test_judged_by_a_change_of_class_what_is_incorrect_anyway_is_not_robust() -> None:
    held = Distances("linf", ("pgd",), ("1", "2", "3", "4"), 4, {"m": np.array([np.inf, np.inf, 0.01, np.inf])}, 0, 0)
    correct = {"m": np.array([1.0, 0.0, 1.0, 1.0])}
    given: dict[str, Any] = {"thresholds": (EPS,), "rng": np.random.default_rng(0)}
    by_prediction = assess_distances(held, DamageSpec(), stated=Stated((EPS,), correct=correct), **given)
    assert by_prediction.models[0].robust_accuracy[EPS].value == 0.5
    targeted = assess_distances(held, DamageSpec(), stated=Stated((EPS,), targeted=True), **given)
    assert targeted.models[0].robust_accuracy == {}
    assert list(size_columns(targeted)) == ["attack success rate at 8/255"]
    assert "attack success rate 25.0 % at 8/255" in headline(targeted)


def test_a_trade_off_is_called_one() -> None:
    assert headline(assessed(**TRADE_OFF)) == (
        "A trade-off: of 2 models adv is the least bad under attack (robust accuracy 50.0 % at 8/255), but gives up "
        "12.0 points of clean accuracy against std (80.0 % against 92.0 %), whose robust accuracy is 0.0 % at 8/255."
    )


def test_a_trade_off_that_damage_does_not_decide_is_called_one_too() -> None:
    found = assessed(**OPEN)
    assert not found.decided
    assert headline(found) == (
        "A trade-off that damage does not decide: adv is better under attack (robust accuracy at 8/255 20.0 % against "
        "0.0 %), std on clean inputs (92.0 % against 70.0 %)."
    )


def test_a_model_that_is_best_in_both_is_no_trade_off() -> None:
    assert headline(assessed(**BETTER)) == (
        "adv is the least bad of 2 models: robust accuracy 42.0 % at 8/255; clean accuracy 92.0 %, the highest of "
        "these."
    )


def test_a_clean_difference_within_chance_is_no_trade_off() -> None:
    found = assessed({"std": 92, "adv": 50}, {"std": 8, "adv": 9})
    loss = next(row.clean_loss for row in found.models if row.model == "adv")
    assert loss is not None
    assert (loss.value, loss.low < 0 < loss.high) == (pytest.approx(0.01), True)
    assert headline(found).endswith("; clean accuracy 91.0 %, 1.0 points below std (within chance).")


def with_conflict(found: DamageAssessment, sentence: str) -> DamageAssessment:
    pair = replace(found.pairs[0], undecided=True, conflicts=(sentence,))
    rows = tuple(replace(row, verdict="undecided against the other") for row in found.models)
    return replace(found, pairs=(pair,), models=rows)


def test_numbers_that_disagree_are_named_everywhere() -> None:
    sentence = (
        "relative damage favours std (0.167 against 0.333), robust accuracy at 8/255 favours adv (20.0 % against 0 %)"
    )
    found = with_conflict(assessed(**BETTER), sentence)
    assert headline(found) == f"Undecided between adv and std: {sentence}."
    assert any(sentence in one for one in findings(found))
    assert sentence in what_would_decide(found.pairs[0])
    assert found.as_dict()["pairs"][0]["conflicts"] == [sentence]
    assert sentence in notebook_html(found)


def undecided(left: int | None) -> DamageAssessment:
    draws = np.random.default_rng(3).random((2, 60))
    distances = Distances("linf", ("pgd",), tuple(map(str, range(60))), 60, dict(zip("ab", draws, strict=True)), 0, 0)
    return assess_distances(distances, DamageSpec(), thresholds=(0.5,), samples_left=left, rng=np.random.default_rng(0))


def test_undecided_damage_leads_with_its_numbers() -> None:
    def said(**more: Any) -> str:
        draws = np.random.default_rng(3).random((2, 60))
        held = Distances("linf", ("pgd",), tuple(map(str, range(60))), 60, dict(zip("ab", draws, strict=True)), 0, 0)
        return headline(assess_distances(held, DamageSpec(), rng=np.random.default_rng(0), **more))

    curve = threshold(0.5)
    assert re.match(r"Undecided between . and .: damage probability [\d.]+ % and [\d.]+ %", said(evasion=curve))
    assert ", robust accuracy at 0.5 " in said(evasion=curve, thresholds=(0.5,))
    assert re.match(r"Undecided between . and .: relative damage 0.\d+ and 0.\d+", said())


def test_samples_are_asked_for_only_where_the_data_set_has_them() -> None:
    n = undecided(None).pairs[0].more_samples
    assert n is not None
    assert f"about {n:,} more samples would probably decide" in headline(undecided(None))
    assert f"about {n:,} more samples would probably decide" in headline(undecided(n))
    assert headline(undecided(0)).endswith("; these samples do not decide, and the data set has no more.")
    assert f"{n:,}" not in " ".join([headline(undecided(0)), *findings(undecided(0))])
    assert "the data set has 1 more sample, probably too few to decide" in headline(undecided(1))
    pair = Pair("a", "b", Estimate(0.1, -0.1, 0.3, 0.95, 60, "x"), undecided=True, more_samples=50)
    assert what_would_decide(pair, 50) == "about 50 more samples would probably decide"


def test_many_sizes_are_all_named() -> None:
    found = assessed(**BETTER, eps=(1 / 255, 2 / 255, EPS))
    assert "robust accuracy 86.0 % at 1/255, 80.0 % at 2/255, 42.0 % at 8/255" in headline(found)
    assert [one["written"] for one in found.as_dict()["sizes"]] == ["1/255", "2/255", "8/255"]
