"""The same numbers from every kind of table; a clear word where a column is not what it should be."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival import fit_survival
from advrisk.risk.survival.frames import read_columns

GIVEN: dict[str, Any] = {"duration": "t", "event": "e", "covariates": ["eps", "defence"], "family": "weibull"}


class Stream:
    """What polars and others have in common: names, columns by name, and an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.columns = table.column_names

    def __getitem__(self, names: list[str]) -> "Stream":
        return Stream(self._table.select(names))

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self._table.__arrow_c_stream__(requested)


class Plain:
    """An old frame: names, and columns that become arrays."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._frame = pd.DataFrame(table)
        self.columns = self._frame.columns

    def __getitem__(self, name: str) -> Any:
        return self._frame[name]


def test_every_kind_of_frame_gives_the_same_fit(tables: dict[str, Any]) -> None:
    table = tables["weibull"]
    arrow = pa.table(table)
    frames = {
        "dict of lists": {name: values.tolist() for name, values in table.items()},
        "arrow": arrow,
        "record batch": arrow.to_batches()[0],
        "chunks": pa.concat_tables([arrow.slice(0, 100), arrow.slice(100)]),
        "dictionary": arrow.set_column(
            arrow.column_names.index("defence"), "defence", arrow["defence"].dictionary_encode()
        ),
        "pandas": pd.DataFrame(table),
        "categories": pd.DataFrame(table).astype({"defence": "category", "e": bool}),
        "stream": Stream(arrow),
        "plain": Plain(table),
    }
    wanted = fit_survival(table, **GIVEN)
    for name, frame in frames.items():
        found = fit_survival(frame, **GIVEN)
        assert found.log_likelihood == wanted.log_likelihood, name
        assert found.coefficients == wanted.coefficients, name


def test_only_the_columns_that_are_asked_for_are_read() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "odd": [object(), object()]})
    assert read_columns(frame, ["a"])["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"a": [1.0], "durations": [1.0]}, "no column 'duration'; did you mean 'durations'"),
        ({"duration": []}, "no rows"),
        ({"duration": [1.0], "other": [1.0, 2.0]}, "differ in length: duration 1, other 2"),
        ({"duration": [[1.0], [2.0]]}, "one dimension"),
        ({"duration": ["a", None]}, "'duration' has 1 value that is missing, the first in row 1"),
        ({"duration": ["a", 3]}, "'duration' must be of numbers or of text"),
        ({"duration": np.array(["2020-01-01"], dtype="datetime64[D]")}, "numbers or of text, found datetime64"),
        (pa.table({"duration": pa.array(["a", None])}), "missing, the first in row 1"),
        (pd.DataFrame({"duration": ["a", None]}), "missing, the first in row 1"),
        (3.0, "a frame is needed, found float"),
    ],
)
def test_a_frame_that_cannot_be_read_is_refused(frame: Any, message: str) -> None:
    names = ["duration", *(["other"] if isinstance(frame, dict) and "other" in frame else [])]
    with pytest.raises(RiskError, match=message):
        read_columns(frame, names)
