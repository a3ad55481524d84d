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


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=4))
def test_no_number_is_lost(models: list[str]) -> None:
    found = metrics([NamedEstimate("damage", name, HALF) for name in models])
    assert sorted(found.values()) == sorted([0.5, 0.25, 0.75] * len(models))


def test_changed_and_cut_names_still_differ() -> None:
    comma, equals = (next(iter(metrics([NamedEstimate("risk", name, HALF)]))) for name in ("a,b", "a=b"))
    assert comma.startswith("risk.a_b-")
    assert comma != equals
    long = metrics([NamedEstimate("risk", "a" * n, HALF) for n in (300, 301)])
    assert len(long) == 6
    assert max(map(len, long)) <= 250
    assert "damage.a.low-" in " ".join(metrics([NamedEstimate("damage", "a.low", HALF)])), "no end of an interval"
