"""Content hashes. The pinned ones were made with `printf … | b2sum -l 128`, not with this package."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.digest import digest, digest_array, digest_bytes


def test_a_value_is_named_by_its_canonical_json() -> None:
    # printf '%s' '{"a":1,"b":[1.5,null,"\u00e9"]}' | b2sum -l 128
    assert digest({"b": [1.5, None, "é"], "a": 1}) == "8e7d386a22d3c27dbe1cffe9bb219085"


def test_byte_strings_are_named_with_their_lengths() -> None:
    # printf '\x02\0\0\0\0\0\0\0ab\x01\0\0\0\0\0\0\0c' | b2sum -l 128
    assert digest_bytes(b"ab", b"c") == "4826ed043ab3cdec576d8541fa5d5a80"
    assert digest_bytes(b"ab", b"c") != digest_bytes(b"a", b"bc")
    assert digest_bytes(b"ab") != digest_bytes(b"ab", b"")


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0, None), ("1", 1), ([1, 2], [2, 1]), ({"a": None}, {}), ([], {}), (["ab"], ["a", "b"])],
)
def test_values_that_differ_have_different_names(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False), min_size=2))
def test_the_order_of_keys_does_not_matter(content: dict[str, Any]) -> None:
    assert digest(dict(reversed(content.items()))) == digest(content)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        digest({"eps": number})


ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    "same",
    [
        lambda a: a.copy(),
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a.astype(">f4"),
    ],
)
def test_an_array_is_named_by_content_not_by_its_place_in_memory(same: Callable[[Any], Any]) -> None:
    assert digest_array(same(ARRAY)) == digest_array(ARRAY)


@pytest.mark.parametrize(
    "other",
    [
        lambda a: a.reshape(3, 2),
        lambda a: a.astype(np.float64),
        lambda a: a.view(np.int32),
        lambda a: a + np.float32(1e-6),
        lambda a: -a[::-1, ::-1],
        lambda a: a[:1],
    ],
)
def test_type_shape_and_every_value_count(other: Callable[[Any], Any]) -> None:
    assert digest_array(other(ARRAY)) != digest_array(ARRAY)


def test_array_digest_is_that_of_type_shape_and_little_endian_bytes() -> None:
    assert digest_array(np.array([1, 256], np.int16)) == digest_bytes(b"<i2", b"(2,)", b"\x01\x00\x00\x01")
