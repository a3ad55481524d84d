"""Numbers as people write them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.numbers import level_text, parse_number, percent_text, size_text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("8/255", 8 / 255),
        (" 8 / 255 ", 8 / 255),
        ("-1/4", -0.25),
        ("+1/4", 0.25),
        ("1.5/0.5", 3.0),
        ("0/1", 0.0),
        ("1e-3", 0.001),
        ("0.25", 0.25),
        (3, 3.0),
        (0.1, 0.1),
        (-2, -2.0),
    ],
)
def test_numbers_and_fractions_are_read(written: object, meant: float) -> None:
    number = parse_number(written)
    assert number == meant
    assert type(number) is float


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_a_fraction_is_the_quotient_of_its_numbers(above: int, below: int) -> None:
    assert parse_number(f"{above}/{below}") == above / below


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_survives_being_written_down(number: float) -> None:
    assert parse_number(number) == number
    assert parse_number(repr(number)) == number


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("8/0", "'8/0' divides by zero"),
        ("8/0.0", "divides by zero"),
        ("8/-1", "found '8/-1'"),
        ("8//255", "found '8//255'"),
        ("1/2/3", "found '1/2/3'"),
        ("/255", "found '/255'"),
        ("eight", "found 'eight'"),
        ("", "found ''"),
        ("0x10", "found '0x10'"),
        ("nan", "finite"),
        ("-inf", "finite"),
        ("1e999", "finite"),
        ("9" * 400 + "/255", "finite"),
        (math.inf, "found inf"),
        (math.nan, "found nan"),
        (10**400, "finite"),
        (True, "found True"),
        (None, "found None"),
        ([1], r"found \[1\]"),
        (b"1", "found b'1'"),
        (1j, "found 1j"),
    ],
)
def test_anything_else_is_refused_with_what_was_found(written: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_number(written)


def test_shares_are_told_in_per_cent() -> None:
    assert (percent_text(0.974, 1), percent_text(1), percent_text(0.0049)) == ("97.4 %", "100 %", "0 %")


@pytest.mark.parametrize(
    ("level", "text"),
    [(0.95, "95 %"), (1 - 0.04 / 7, "99.43 %"), (0.9995, "99.95 %"), (1 - 1e-7, "99.99999 %"), (1.0, "100 %")],
)
def test_a_level_has_four_digits_and_is_never_rounded_up_to_certainty(level: float, text: str) -> None:
    assert level_text(level) == text


@pytest.mark.parametrize(
    "written", ["8/255", "0.1", "1/255", "0.5/255", "254/255", "1/3", "0.0625", "2", "0.003", "12.5"]
)
def test_sizes_come_back_as_they_were_written(written: str) -> None:
    assert size_text(parse_number(written)) == written


@given(st.floats(min_value=0, max_value=1e6, allow_nan=False))
def test_a_size_that_is_shown_is_the_size_to_six_digits(size: float) -> None:
    assert parse_number(size_text(size)) == pytest.approx(size, rel=1e-5, abs=1e-300)
