"""Durations are read as people write them, and written as they are read."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.durations import duration_text, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("45s", 45),
        ("0.5h", 1800),
        ("1d", 86400),
        ("1h0.5s", 3600.5),
        ("0s", 0),
        (timedelta(minutes=3), 180),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", 90, 1.5, None, "m", "30m1h", "2h2h", "-5m", "1e3s", "nanm", "infh", True])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="a duration such as 90m, 2h, 1h30m or 45s is needed, found"):
        parse_duration(text)


def test_a_negative_timedelta_is_refused() -> None:
    with pytest.raises(ValueError, match="is needed"):
        parse_duration(timedelta(seconds=-1))


@given(st.integers(0, 10**7))
def test_whole_seconds_come_back(seconds: int) -> None:
    assert parse_duration(duration_text(seconds)) == seconds
