"""The line that a clause is told of a topic: whose number it is, its interval, and what a range is over."""

from typing import Any

import pytest

from advrisk.report.evidence.headlines import headline, value_text


def number(
    quantity: str, what: str, model: str, value: float | None, *, unit: str = "share", note: str = "", **about: str
) -> dict[str, Any]:
    low, high = (None, None) if value is None else (value - 0.02, value + 0.03)
    estimate = {"value": value, "low": low, "high": high, "level": 0.95, "n": 500, "method": "exact"}
    named = {"quantity": quantity, "loss": "", "than": ""} | about
    return {"what": what, "model": model, "estimate": estimate, "exact": None, "unit": unit, "note": note} | named


BROKEN = {"a": (0.1, 0.4), "b": (0.05, 0.3), "c": (0.9, 0.9)}
RATES, ROBUST = (
    [
        number(quantity, f"{name} at linf {eps}", model, of(share))
        for model, shares in BROKEN.items()
        for eps, share in zip((0.1, "8/255"), shares, strict=True)
    ]
    for quantity, name, of in (
        ("broken", "attack success rate", lambda share: share),
        ("robust_accuracy", "robust accuracy", lambda share: 1 - share),
    )
)


def test_the_model_to_ship_leads_with_its_least_robust_accuracy() -> None:
    assert headline("success", [*RATES, *ROBUST], "b") == (
        "b, the least bad model: robust accuracy at linf 8/255: 70.0 % [68.0, 73.0]; "
        "over the 2 other models: 10.0 % to 60.0 %"
    )


def test_of_a_target_the_attack_success_rate_leads() -> None:
    assert headline("success", RATES, "b") == (
        "b, the least bad model: attack success rate at linf 8/255: 30.0 % [28.0, 33.0]; "
        "over the 2 other models: 40.0 % to 90.0 %"
    )


def test_without_one_the_worst_model_leads_and_of_equal_sizes_the_largest() -> None:
    assert headline("success", ROBUST, "") == (
        "c, the worst of 3 models: robust accuracy at linf 8/255: 10.0 % [8.0, 13.0]; "
        "over the 2 other models: 60.0 % to 70.0 %"
    )


def test_one_model_has_no_range() -> None:
    assert headline("success", ROBUST[:2], "") == "a: robust accuracy at linf 8/255: 60.0 % [58.0, 63.0]"


def test_a_size_is_written_as_one() -> None:
    largest = {"what": "largest certified eps, linf", "model": "a", "estimate": None, "exact": 8 / 255, "note": ""}
    assert value_text(largest | {"unit": "size"}) == "8/255"
    assert value_text(largest | {"unit": "size", "exact": "none"}) == "none"


@pytest.mark.parametrize(
    ("topic", "quantity", "value"),
    [("accuracy", "clean_accuracy", "20.0 %"), ("people", "unnoticed_by_people", "80.0 %")],
)
def test_which_end_is_bad_depends_on_the_quantity(topic: str, quantity: str, value: str) -> None:
    said = headline(topic, [number(quantity, "it", "a", 0.2), number(quantity, "it", "b", 0.8)], "")
    assert said.split(": ")[2].startswith(value)


def test_the_strongest_corruption_of_the_first_loss_leads() -> None:
    rows = [
        number("corruption_risk", "misclassified under fog,level=1", "a", 0.1, loss="misclassified"),
        number("corruption_risk", "misclassified under fog,level=5", "a", 0.5, loss="misclassified"),
        number("corruption_risk", "money under fog,level=5", "a", 9.0, unit="number", loss="money"),
    ]
    assert headline("corruptions", rows, "a").startswith(
        "a, the least bad model: misclassified under fog,level=5: 50.0 %"
    )


def test_what_has_no_end_is_the_best_where_work_is_counted() -> None:
    rows = [number("survival", "mean passes", model, n, unit="number") for model, n in (("a", None), ("b", 7.0))]
    assert headline("survival", rows, "") == (
        "b, the worst of 2 models: mean passes: 7.00 [6.98, 7.03]; over the other model: infinite"
    )


def test_a_comparison_names_the_nearest_other_model() -> None:
    what = "relative damage: how much more than b"
    rows = [
        number("relative_damage", "relative damage", "b", 0.1, unit="number"),
        number("damage_difference", what, "c", 0.6, unit="number", note="decided", than="b"),
        number("damage_difference", what, "a", 0.1, unit="number", note="undecided", than="b"),
    ]
    assert headline("comparison", rows, "b") == (
        f"a: {what}: 0.100 [0.0800, 0.130] (undecided); over the other model: 0.600"
    )
    assert headline("comparison", rows, "").startswith("1 of 2 pairs of models decided; c: ")


def test_a_gate_tells_the_worst_verdict() -> None:
    rows = [
        {"what": what, "model": "", "estimate": None, "exact": verdict, "unit": "number", "note": ""}
        for what, verdict in {"x <= 1": "pass", "y <= 2": "fail", "z <= 3": "undecided"}.items()
    ]
    assert headline("gate", rows, "") == "of 3 requirements 1 fail, 1 undecided, 1 pass; y <= 2 fails"


def test_long_names_are_cut_and_nothing_says_nothing() -> None:
    assert (
        len(headline("success", [number("robust_accuracy", "robust accuracy at linf 0.1", "n" * 10_000, 0.5)], ""))
        < 200
    )
    assert headline("success", [], "") == ""
