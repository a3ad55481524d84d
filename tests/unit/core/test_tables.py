"""Rows as Arrow, pandas and polars: the same values, and types also where there is no row."""

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import pytest

from advrisk.core.errors import RunError
from advrisk.core.estimate import Estimate
from advrisk.core.tables import Columns, Row, Tabular

ROWS: list[Row] = [
    {"name": "a", "value": 1.5, "n": 3, "sure": True},
    {"name": None, "value": None, "n": None, "sure": None},
    {"name": "é", "value": math.inf, "n": 2**40, "sure": False},
    {"value": 2},
]


@dataclass(frozen=True)
class Told(Tabular):
    """Some rows."""

    told: tuple[Row, ...]
    columns: ClassVar[Columns] = {"name": "text", "value": "number", "n": "count", "sure": "flag"}

    def rows(self) -> list[Row]:
        return list(self.told)


SOME, NONE = Told(tuple(ROWS)), Told(())
WHOLE = [{name: row.get(name) for name in Told.columns} for row in ROWS]


def test_all_three_hold_the_same() -> None:
    assert SOME.to_arrow().to_pylist() == WHOLE
    assert SOME.to_polars().to_dicts() == WHOLE
    frame = SOME.to_pandas()
    for name in Told.columns:
        known = frame[name].notna()
        assert known.tolist() == [row[name] is not None for row in WHOLE]
        assert frame[name][known].tolist() == [row[name] for row in WHOLE if row[name] is not None]


def test_no_row_has_the_same_types_as_some() -> None:
    assert NONE.to_arrow().schema == SOME.to_arrow().schema
    assert NONE.to_polars().schema == SOME.to_polars().schema
    assert NONE.to_pandas().dtypes.tolist() == SOME.to_pandas().dtypes.tolist()
    assert [str(kind) for kind in SOME.to_pandas().dtypes] == ["string", "float64", "Int64", "boolean"]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RunError, match=f"{package} is not installed; install it with `pip install {package}`"):
        getattr(SOME, f"to_{package}")()


def test_an_estimate_is_a_row() -> None:
    (row,) = Estimate(0.5, 0.25, math.inf, 0.9, 7, "exact").to_arrow().to_pylist()
    assert row == {"value": 0.5, "low": 0.25, "high": math.inf, "level": 0.9, "n": 7, "method": "exact"}
