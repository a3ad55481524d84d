"""Tables as data: what DESIGN promises is there, and nothing else gets in."""

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import OUTCOMES, TABLES, Outcome, constant, table_from
from advrisk.ledger.tables import KEYS

OUTCOME_COLUMNS = """
    run, cell, model, sample, arm, kind, family, norm, eps, objective, repeat, criterion, target, clean_prediction,
    prediction, confidence, outcome, survives_8bit, success_rate, draws, d_l0, d_l1, d_l2, d_linf, near_l0,
    near_l1, near_l2, near_linf, n_forward, n_backward, n_judge, n_rejected, n_confirm, n_forward_first,
    n_backward_first, n_forward_before, n_backward_before,
    first_s, spent_s, message
"""


def test_outcomes_have_the_columns_of_the_design() -> None:
    assert TABLES["outcomes"].names == [name.strip() for name in OUTCOME_COLUMNS.split(",")]


def test_the_tables_of_the_design_are_there() -> None:
    assert {"outcomes", "outputs", "scores", "cells", "models", "samples"} <= set(TABLES)


def test_the_outcomes_are_the_six_of_the_design() -> None:
    assert get_args(Outcome) == OUTCOMES
    assert set(OUTCOMES) == {"success", "resisted", "already_wrong", "rejected", "error", "timeout"}


def test_keys_are_columns() -> None:
    for name, keys in KEYS.items():
        assert set(keys) <= set(TABLES[name].names)


def test_columns_that_are_not_given_are_null() -> None:
    table = table_from("samples", {"sample": ["s1", "s2"], "label": [3, None]})
    assert table.schema == TABLES["samples"]
    assert table.to_pylist()[0] == dict.fromkeys(TABLES["samples"].names) | {"sample": "s1", "label": 3}
    assert table["label"].to_pylist() == [3, None]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_can_be_made_of_nothing(name: str) -> None:
    empty = table_from(name, {})
    assert empty.schema == TABLES[name]
    assert empty.num_rows == 0


@pytest.mark.parametrize(
    "given",
    [
        ["b", "a", "b", None],
        ("b", "a", "b", None),
        pa.array(["b", "a", "b", None]),
        pa.array(["b", "a", "b", None]).dictionary_encode(),
        pa.chunked_array([["b", "a"], ["b", None]]),
        np.array(["b", "a", "b", None], object),
    ],
)
def test_names_may_be_given_in_any_shape(given: Any) -> None:
    table = table_from("outcomes", {"model": given})
    assert table.schema == TABLES["outcomes"]
    assert table["model"].to_pylist() == ["b", "a", "b", None]


def test_numbers_may_be_given_as_arrays() -> None:
    assert table_from("outcomes", {"target": [2.0, None], "repeat": np.array([3.0, 4.0])})["target"].to_pylist() == [
        2,
        None,
    ]
    table = table_from(
        "outcomes", {"repeat": np.arange(3), "eps": np.array([0.1, np.inf, np.nan]), "n_judge": [1, 2, 3]}
    )
    assert table["repeat"].to_pylist() == [0, 1, 2]
    assert repr(table["eps"].to_pylist()) == "[0.1, inf, nan]"


@pytest.mark.parametrize(
    ("name", "columns", "complaint"),
    [
        ("outcome", {"model": ["a"]}, "there is no table called 'outcome'; did you mean 'outcomes'?"),
        ("outcomes", {"modle": ["a"]}, "outcomes has no column 'modle'; did you mean 'model'?"),
        ("models", {"model": [1]}, "models.model: "),
        ("samples", {"sample": ["a"], "label": ["three"]}, "samples.label: "),
        ("samples", {"sample": ["a"], "label": [2.5]}, "samples.label: "),
        ("samples", {"sample": ["a"], "label": [2**40]}, "samples.label: "),
        ("outcomes", {"model": ["a"], "n_forward": [2**70]}, "outcomes.n_forward: "),
        ("models", {"model": ["a"], "digest": ["x", "y"]}, "models.digest: 2 values, but the first column has 1"),
        ("models", {"model": ["a"], "digest": pa.array(["x", "y"])}, "models.digest: 2 values"),
    ],
)
def test_what_does_not_fit_is_refused_by_column(name: str, columns: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LedgerError) as caught:
        table_from(name, columns)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(("value", "n"), [("pgd", 3), ("pgd", 0), (None, 2)])
def test_a_constant_says_the_same_n_times(value: str | None, n: int) -> None:
    column = constant(value, n)
    assert column.to_pylist() == [value] * n
    assert table_from("outcomes", {"arm": column}).schema == TABLES["outcomes"]


def test_a_constant_stores_its_word_once() -> None:
    assert constant("x" * 1000, 1000).nbytes < 10_000
