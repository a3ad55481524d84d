import math

import pytest

from advrisk.core.estimate import Estimate
from advrisk.core.sections import Column
from advrisk.core.values import value_lines, value_text

SHARE = Estimate(1 / 3, 0.043, 0.777, 0.95, 6, "Clopper-Pearson")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (SHARE, "share", "33.3 % [4.3, 77.7]"),
        (SHARE, "number", "0.333 [0.043, 0.777]"),
        (0.5, "share", "50.0 %"),
        (8 / 255, "distance", "8/255"),
        (12345, "count", "12,345"),
        (1234.5678, "seconds", "1,235"),
        (0.0123456, "seconds", "0.0123"),
        (1.5e-7, "seconds", "1.5e-07"),
        (0, "seconds", "0"),
        (0.00001, "p-value", "1.0e-05"),
        (1e-20, "p-value", "< 1e-12"),
        (0.0312, "p-value", "0.0312"),
        (True, "flag", "yes"),
        (False, "flag", "no"),
        ("plain", "text", "plain"),
        (None, "share", "–"),
        (math.nan, "number", "–"),
        (math.inf, "seconds", "unlimited"),
    ],
)
def test_the_kind_of_the_column_says_how_a_value_is_written(value, kind, text):
    assert value_text(value, Column("x", kind)) == text


def test_an_interval_is_a_line_of_its_own():
    assert value_lines(SHARE, Column("x", "share")) == ("33.3 %", "[4.3, 77.7]")


def test_an_end_that_too_few_samples_leave_open_is_unknown():
    estimate = Estimate(2.0, 1.0, math.inf, 0.95, 3, "Kaplan-Meier")
    assert value_text(estimate, Column("x", "number")) == "2.000 [1.000, unknown]"
