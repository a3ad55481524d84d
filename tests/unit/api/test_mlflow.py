"""Names and numbers for MLflow: valid and finite."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advrisk.api.mlflow import metrics
from advrisk.core.estimate import Estimate, NamedEstimate

HALF = Estimate(0.5, 0.25, 0.75, 0.95, 8, "bootstrap")


@given(st.text(min_size=1, max_size=400))
def test_every_name_is_one_that_mlflow_takes(name: str) -> None:
    from mlflow.utils.validation import _validate_metric_name

    for found in metrics([NamedEstimate("damage", name, HALF)]):
        _validate_metric_name(found)


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


def test_strange_letters_are_replaced_and_long_names_cut() -> None:
    assert list(metrics([NamedEstimate("risk", "a,b", HALF)])) == ["risk.a_b", "risk.a_b.low", "risk.a_b.high"]
    assert max(map(len, metrics([NamedEstimate("risk", "a" * 300, HALF)]))) == 245
