"""Rows that no run writes are refused when a ledger is opened, also where their digests fit."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, check, repair, validity
from advrisk.ledger.exchange.importing import import_outcomes
from tests.stamps import restamp


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Of a ledger with every table that is checked."""
    rows = "model,sample,arm,norm,eps,d_linf,outcome\na,1,pgd,linf,0.1,0.05,success\na,2,pgd,linf,0.1,,resisted\n"
    (tmp_path / "rows.csv").write_text(rows)
    import_outcomes(tmp_path / "rows.csv", tmp_path / "run")
    (found,) = (tmp_path / "run" / "ledger" / "segments").iterdir()
    return found


def forge(segment: Path, table: str, column: str, value: Any) -> None:
    """Write a value into the last row of a table, with digests that fit."""
    file = segment / f"{table}.parquet"
    rows = pq.read_table(file, partitioning=None)
    place = rows.column_names.index(column)
    values = [*rows[column].to_pylist()[:-1], value]
    field = rows.schema.field(place)
    plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    pq.write_table(rows.set_column(place, field, pa.array(values, plain).cast(field.type)), file)
    restamp(segment)


FORGED = [
    ("outcomes", "outcome", None, "one of success, resisted"),
    ("outcomes", "outcome", "won", "one of success, resisted"),
    ("outcomes", "kind", "prayer", "one of clean, corruption, attack"),
    ("outcomes", "eps", float("nan"), "a finite number from 0 up"),
    ("outcomes", "eps", -0.1, "a finite number from 0 up"),
    ("outcomes", "d_linf", float("nan"), "a number from 0 up"),
    ("outcomes", "near_l2", -1.0, "a number from 0 up"),
    ("outcomes", "n_forward", -3, "a whole number from 0 up"),
    ("outcomes", "repeat", 2**31 - 1, "a whole number from 0 to 999999"),
    ("outcomes", "success_rate", 1.5, "a share"),
    ("arms", "params", "[1]", "a JSON object"),
    ("arms", "params", "{", "a JSON object"),
    ("arms", "repeats", 2**31 - 1, "a whole number from 1 to 1000000"),
    ("arms", "origin", "elsewhere", "one of study, surrogate"),
    ("models", "tags", '{"depth": {"deep": 1}}', "a JSON object with plain values"),
    ("models", "train_s", -1.0, "a number from 0 up"),
    ("samples", "strata", '"night"', "a JSON object with plain values"),
    ("samples", "strata", '{"site": [["a"]]}', "a JSON object with plain values"),
    ("samples", "split", "bogus", "a split is needed"),
    ("samples", "weight", float("nan"), "a finite number from 0 up"),
    ("samples", "sample", None, "a name"),
    ("cells", "n_errors", -1, "a whole number from 0 up"),
]


@pytest.mark.parametrize(("table", "column", "value", "needed"), FORGED)
def test_what_no_run_writes_is_refused_by_row_and_column(
    segment: Path, table: str, column: str, value: Any, needed: str
) -> None:
    opened = Ledger.open(segment.parents[2])
    n = opened.query(f"SELECT count(*) AS n FROM all_{table}")["n"][0].as_py()
    forge(segment, table, column, value)
    with pytest.raises(LedgerError) as error:
        Ledger.open(segment.parents[2]).query("SELECT 1")
    told = str(error.value)
    assert told.startswith(f"{segment / table}.parquet: row {n}: {table}.{column}: {needed}"), told
    assert repr(str(value)) in told
    assert told.endswith("take the ledger from its source")


def test_a_check_and_a_repair_refuse_what_readers_refuse(segment: Path) -> None:
    run = segment.parents[2]
    assert not check(run).findings
    forge(segment, "outcomes", "eps", -0.1)
    for look in (check, repair):
        with pytest.raises(LedgerError, match=r"outcomes\.eps: a finite number from 0 up is needed, found '-0\.1'"):
            look(run)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("samples", "strata", '{"site": "Hall [2] {north}", "light": "[dim"}'),
        ("models", "tags", '{"depth": 8, "trained": "{adam}", "note": "[a] and [b]", "pruned": true}'),
    ],
)
def test_brackets_in_the_values_of_strata_and_tags_are_text(segment: Path, table: str, column: str, value: str) -> None:
    forge(segment, table, column, value)
    assert value in Ledger.open(segment.parents[2]).query(f"SELECT {column} FROM all_{table}")[column].to_pylist()


def test_a_file_is_checked_once_until_it_changes(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    refuse = validity._refuse
    monkeypatch.setattr(validity, "_refuse", lambda *given: (checked.append(given[1]), refuse(*given)))
    for _ in range(2):
        Ledger.open(segment.parents[2]).query("SELECT 1")
    assert sorted(checked) == sorted(table for table in validity.RULES if (segment / f"{table}.parquet").is_file())
    forge(segment, "models", "train_s", 2.0)
    Ledger.open(segment.parents[2]).query("SELECT 1")
    assert checked[-1] == "models"
