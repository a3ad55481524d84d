"""No estimate leaves the program without an interval that holds its value."""

import dataclasses
import json
import math

import pytest

from advrisk.core import Estimate
from advrisk.core.errors import RiskError

GOOD = {"value": 0.31, "low": 0.28, "high": 0.345, "level": 0.95, "n": 500, "method": "bootstrap"}


def test_it_says_all_six_things_as_plain_json() -> None:
    assert json.loads(json.dumps(Estimate(**GOOD).as_dict())) == GOOD


def test_it_reads_as_value_and_interval() -> None:
    assert str(Estimate(**GOOD | {"high": 0.3456})) == "0.310 [0.280, 0.346]"


def test_a_limit_of_which_nothing_is_known_is_told_so() -> None:
    assert str(Estimate(**GOOD | {"high": math.inf, "n": 1})) == "0.310 [0.280, unknown]"
    assert Estimate(**GOOD).in_percent() == "31.0 % [28.0, 34.5]"


def test_value_may_lie_on_either_end_and_ends_may_be_infinite() -> None:
    assert Estimate(**GOOD | {"value": 0.28}).low == 0.28
    assert Estimate(**GOOD | {"value": 0.345}).high == 0.345
    assert Estimate(**GOOD | {"value": math.inf, "high": math.inf}).value == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 0.32},
        {"high": 0.30},
        {"value": math.nan},
        {"low": math.nan},
        {"high": math.nan},
    ],
)
def test_an_interval_that_misses_its_value_is_refused(wrong: dict[str, float]) -> None:
    numbers = GOOD | wrong
    with pytest.raises(RiskError) as caught:
        Estimate(**numbers)
    assert f"{numbers['low']} <= {numbers['value']} <= {numbers['high']}" in str(caught.value)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan])
def test_a_level_is_a_probability_strictly_between_0_and_1(level: float) -> None:
    with pytest.raises(RiskError, match=f"found {level}"):
        Estimate(**GOOD | {"level": level})


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Estimate(**GOOD).value = 0.0  # type: ignore[misc]
