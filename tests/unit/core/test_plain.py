"""Strict JSON from whatever results hold."""

import json
import math
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.plain import json_text, plain

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(LEAVES, lambda held: st.lists(held) | st.dictionaries(st.text(), held), max_leaves=8)


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@given(VALUES)
def test_any_value_is_strict_json_and_comes_back(value: object) -> None:
    assert json.loads(json_text(value), parse_constant=refuse) == plain(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_every_bit(value: float) -> None:
    assert json.loads(json_text(value)) == value


def test_what_json_has_no_word_for() -> None:
    assert plain([math.inf, -math.inf, math.nan, np.float32(math.nan)]) == [None] * 4
    assert plain(np.array([[1.5, np.inf]])) == [[1.5, None]]
    assert plain({1: (np.int64(2), np.bool_(True)), "of": {"b", "a"}}) == {"1": [2, True], "of": ["a", "b"]}
    assert type(plain(np.int64(2))) is int
    assert plain(Path("a")) == "a"
