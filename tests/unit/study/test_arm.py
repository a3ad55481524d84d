"""What decides what an arm does, and what does not."""

import dataclasses
import json
from typing import Any

import pytest

from advrisk.study import CLEAN, Arm

ARM = Arm(
    "pgd-linf-0.1-ace",
    "attack",
    "pgd",
    version=2,
    norm="linf",
    eps=0.1,
    objective="ace",
    keep="first",
    max_queries=100,
    repeats=3,
    params={"steps": 40},
)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "corruption"},
        {"family": "bim"},
        {"version": 3},
        {"norm": "l2"},
        {"eps": 0.2},
        {"eps": None},
        {"objective": "kl"},
        {"keep": "last"},
        {"max_queries": None},
        {"params": {"steps": 41}},
        {"params": {}},
        {"crafted_by": CLEAN},
        {"draws": 4},
    ],
)
def test_whatever_decides_what_it_does_is_its_identity(change: dict[str, Any]) -> None:
    assert dataclasses.replace(ARM, **change).identity() != ARM.identity()


@pytest.mark.parametrize("change", [{"repeats": 5}, {"id": "other"}, {"cause": "weather"}, {"name": "strong"}])
def test_how_often_it_is_repeated_and_what_it_is_called_is_not(change: dict[str, Any]) -> None:
    assert dataclasses.replace(ARM, **change).identity() == ARM.identity()


def test_one_draw_is_not_written_down_so_that_arms_of_before_keep_their_names() -> None:
    assert "draws" not in ARM.identity()


def test_every_field_of_an_arm_is_in_one_of_the_two_lists_above() -> None:
    """A new field must be put into `identity`, or be known not to decide anything."""
    transfer = dataclasses.replace(ARM, crafted_by=ARM, draws=2)
    assert {field.name for field in dataclasses.fields(Arm)} == {
        *transfer.identity(),
        *("id", "name", "repeats", "cause"),
    }


def test_an_identity_is_plain_json_and_a_copy() -> None:
    identity = ARM.identity()
    assert json.loads(json.dumps(identity)) == identity
    identity["params"]["steps"] = 0
    assert ARM.params == {"steps": 40}


def test_the_clean_arm_does_nothing_once() -> None:
    assert (CLEAN.id, CLEAN.kind, CLEAN.repeats, CLEAN.params, CLEAN.eps, CLEAN.norm) == (
        *("clean", "clean", 1, {}),
        *(None, None),
    )
