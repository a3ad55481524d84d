"""Names and numbers for MLflow: valid, different, and finite."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advrisk.api.mlflow import metric_names, metrics
from advrisk.core.estimate import Estimate, NamedEstimate

HALF = Estimate(0.5, 0.25, 0.75, 0.95, 8, "bootstrap")


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=4))
def test_every_name_is_valid_and_none_is_lost(names: list[str]) -> None:
    from mlflow.utils.validation import _validate_metric_name

    found = metric_names([f"damage.{name}" for name in names])
    assert len({name.casefold() for name in found}) == len(names)
    for name in found:
        _validate_metric_name(f"{name}.high")


def test_long_names_are_cut_and_differ() -> None:
    first, second = metric_names(["a" * 300, "a" * 301])
    assert len(first) == len(second) < 245
    assert first != second


def test_names_that_are_fine_stay() -> None:
    assert metric_names(["damage.plain", "broken.plain.linf.0.1"]) == ["damage.plain", "broken.plain.linf.0.1"]
    comma, equals = metric_names(["risk.a,b", "risk.a=b"])
    assert comma.startswith("risk.a_b-")
    assert comma != equals
    assert metric_names(["damage.a", "damage.a.low"])[1].startswith("damage.a.low-")


def test_an_estimate_is_three_numbers_and_an_infinite_end_none() -> None:
    assert metrics([NamedEstimate("damage", "a", HALF)]) == {
        "damage.a": 0.5,
        "damage.a.low": 0.25,
        "damage.a.high": 0.75,
    }
    assert metrics([NamedEstimate("damage", "a", replace(HALF, high=math.inf), of="linf", eps=0.1)]) == {
        "damage.a.linf.0.1": 0.5,
        "damage.a.linf.0.1.low": 0.25,
    }
