"""Taking things out of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger
from advrisk.ledger.exchange.exporting import export_inputs, export_table


def exported(kept_run: Path, **names: str) -> list[tuple[Any, ...]]:
    target = kept_run.parent / "out.npz"
    n = export_inputs(kept_run, Ledger.open(kept_run), target, **names)
    with np.load(target, allow_pickle=False) as kept:
        assert kept["x"].shape == kept["x_adv"].shape == (n, 1, 2, 2)
        columns = [kept[name].tolist() for name in ("model", "arm", "sample", "label")]
        values = [[round(float(row.mean()), 6) for row in kept[name]] for name in ("x", "x_adv")]
    return list(zip(*columns, *values, strict=True))


def test_kept_successes_are_exported_beside_their_originals(kept_run: Path) -> None:
    assert exported(kept_run) == [
        ("plain", "a1", "s1", 1, 0.1, 0.15),
        ("plain", "a2", "s1", 1, 0.1, 0.16),
        ("other", "a1", "s3", 3, 0.3, 0.35),
    ]


def test_inputs_of_one_model_or_arm_may_be_exported(kept_run: Path) -> None:
    assert [row[:3] for row in exported(kept_run, model="plain")] == [("plain", "a1", "s1"), ("plain", "a2", "s1")]
    assert [row[:3] for row in exported(kept_run, arm="a1")] == [("plain", "a1", "s1"), ("other", "a1", "s3")]
    assert [row[:3] for row in exported(kept_run, model="plain", arm="a2")] == [("plain", "a2", "s1")]


def test_inputs_of_arms_that_match_a_pattern_may_be_exported(kept_run: Path) -> None:
    assert exported(kept_run, arm="a*") == exported(kept_run)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({"model": "plian"}, "no model is called 'plian'; did you mean 'plain'"),
        ({"arm": "none*"}, "no arm is called"),
        ({"model": "other", "arm": "a2"}, "no input of a success was kept that matches"),
    ],
)
def test_nothing_to_export_is_said(kept_run: Path, names: dict[str, str], complaint: str) -> None:
    with pytest.raises(LedgerError, match=complaint):
        export_inputs(kept_run, Ledger.open(kept_run), kept_run / "out.npz", **names)


def test_a_table_is_exported_as_parquet_or_csv(kept_run: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(kept_run)
    assert export_table(ledger, "outcomes", tmp_path / "out.parquet") == 5
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == ledger.query("SELECT * FROM outcomes").to_pylist()
    assert export_table(ledger, "outputs", tmp_path / "out.csv") == 5
    assert pacsv.read_csv(tmp_path / "out.csv")["logits"].to_pylist() == ["[1.0, 2.0]"] * 5
    assert export_table(ledger, "scores", tmp_path / "none.csv") == 0


@pytest.mark.parametrize(
    ("table", "target", "complaint"),
    [
        ("outcome", "out.csv", "there is no table called 'outcome'; did you mean 'outcomes'?"),
        ("stale", "out.csv", "there is no table called 'stale'"),
        ("outcomes", "out.xls", "the name must end in .csv or .parquet"),
        ("outcomes", "none/out.csv", "cannot be written"),
        ("outcomes", "none/out.parquet", "cannot be written"),
    ],
)
def test_a_table_that_cannot_be_exported(
    kept_run: Path, tmp_path: Path, table: str, target: str, complaint: str
) -> None:
    with pytest.raises(LedgerError) as caught:
        export_table(Ledger.open(kept_run), table, tmp_path / target)
    assert complaint in str(caught.value)


def test_inputs_that_cannot_be_written(kept_run: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        export_inputs(kept_run, Ledger.open(kept_run), tmp_path / "none" / "out.npz")
