"""Strict JSON from whatever results hold."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson, json_text, plain, plain_fields
from advrisk.core.tables import Tabular

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


HALF = Estimate(0.5, 0.0, math.inf, 0.95, 4, "exact")


@dataclass(frozen=True)
class Leaf:
    name: str
    values: np.ndarray


@dataclass(frozen=True)
class Rate:
    estimate: Estimate
    unit: str

    in_json: ClassVar[InJson] = {"estimate": ""}


@dataclass(frozen=True)
class Tree(Tabular):
    leaves: tuple[Leaf, ...]
    by_name: Mapping[int, Estimate | None]
    root: Leaf | None
    hidden: object

    in_json: ClassVar[InJson] = {"hidden": None, "root": "stem", "root.name": "root", "n_leaves": "n"}

    @property
    def n_leaves(self) -> int:
        return len(self.leaves)


def test_a_record_is_its_fields_however_deep_they_lie() -> None:
    tree = Tree((Leaf("a", np.array([1.0, math.nan])),), {3: HALF, 4: None}, None, object())
    half = {"value": 0.5, "low": 0.0, "high": None, "level": 0.95, "n": 4, "method": "exact"}
    expected = {
        "leaves": [{"name": "a", "values": [1.0, None]}],
        "by_name": {"3": half, "4": None},
        "stem": None,
        "root": None,
        "n": 1,
    }
    assert plain(tree) == tree.as_dict() == plain_fields(tree) == expected


def test_a_record_says_what_is_left_out_renamed_added_and_put_in_its_place() -> None:
    tree = Tree((), {}, Leaf("oak", np.zeros(1)), None).as_dict()
    assert tree == {"leaves": [], "by_name": {}, "stem": {"name": "oak", "values": [0.0]}, "root": "oak", "n": 0}
    assert plain(Rate(HALF, "s")) == HALF.as_dict() | {"unit": "s"}


def test_a_record_that_reshapes_itself_is_told_as_it_says() -> None:
    class Own(Estimate):
        def as_dict(self) -> dict[str, object]:
            return {"own": np.float64(self.value), "all": super().as_dict()}

    own = Own(0.5, 0.0, 1.0, 0.95, 4, "exact")
    assert plain([own])[0]["own"] == 0.5
    assert plain([own])[0]["all"] == Estimate(0.5, 0.0, 1.0, 0.95, 4, "exact").as_dict()
