"""Taking things out of a run, and deleting stored inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked, table_from
from advrisk.ledger.exchange.exporting import export_inputs, export_table
from advrisk.ledger.inputs import cell_inputs, read_inputs, shard_inputs, write_inputs
from advrisk.ledger.maintenance.deleting import delete_inputs

Tables = dict[str, Any]

CLEAN = {"s1": 0.1, "s2": 0.2, "s3": 0.3}


def image(value: float) -> Any:
    return np.full((1, 2, 2), value, np.float32)


@pytest.fixture
def run(tmp_path: Path, cell: Callable[..., Tables]) -> Path:
    """Two models; `plain` falls on s1 and s2 (a1) and on s1 (a2), `other` on s3; s2 of a1 was not kept."""
    folder = tmp_path / "run"
    ledger = Ledger.open(folder, create=True)
    for name, model, arm, samples, outcome in [
        ("aa", "plain", "a1", ["s1", "s2"], "success"),
        ("bb", "plain", "a2", ["s1"], "success"),
        ("cc", "other", "a1", ["s3"], "success"),
        ("dd", "other", "a2", ["s3"], "resisted"),
    ]:
        ledger.append(cell(name, samples, model=model, arm=arm, outcome=outcome))
    pairs = {"model": ["plain", "plain", "other", "other"], "arm": ["a1", "a2", "a1", "a2"], "recipe": ["r1"] * 4}
    samples = {"sample": list(CLEAN), "label": [1, 2, 3], "shard": ["sh"] * 3}
    ledger.append({"arms": table_from("arms", pairs), "samples": table_from("samples", samples)})
    write_inputs(shard_inputs(folder, "sh"), list(CLEAN), np.stack([image(value) for value in CLEAN.values()]))
    for name, sample, value in [("aa", "s1", 0.15), ("bb", "s1", 0.16), ("cc", "s3", 0.35), ("dd", "s3", 0.36)]:
        write_inputs(cell_inputs(folder, name), [sample], image(value)[None])
    return folder


def exported(run: Path, **names: str) -> list[tuple[Any, ...]]:
    target = run.parent / "out.npz"
    n = export_inputs(run, Ledger.open(run), target, **names)
    with np.load(target, allow_pickle=False) as kept:
        assert kept["x"].shape == kept["x_adv"].shape == (n, 1, 2, 2)
        columns = [kept[name].tolist() for name in ("model", "arm", "sample", "label")]
        values = [[round(float(row.mean()), 6) for row in kept[name]] for name in ("x", "x_adv")]
    return list(zip(*columns, *values, strict=True))


def test_kept_successes_are_exported_beside_their_originals(run: Path) -> None:
    assert exported(run) == [
        ("plain", "a1", "s1", 1, 0.1, 0.15),
        ("plain", "a2", "s1", 1, 0.1, 0.16),
        ("other", "a1", "s3", 3, 0.3, 0.35),
    ]


def test_inputs_of_one_model_or_arm_may_be_exported(run: Path) -> None:
    assert [row[:3] for row in exported(run, model="plain")] == [("plain", "a1", "s1"), ("plain", "a2", "s1")]
    assert [row[:3] for row in exported(run, arm="a1")] == [("plain", "a1", "s1"), ("other", "a1", "s3")]
    assert [row[:3] for row in exported(run, model="plain", arm="a2")] == [("plain", "a2", "s1")]


def test_inputs_of_arms_that_match_a_pattern_may_be_exported(run: Path) -> None:
    assert exported(run, arm="a*") == exported(run)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({"model": "plian"}, "no model is called 'plian'; did you mean 'plain'"),
        ({"arm": "none*"}, "no arm is called"),
        ({"model": "other", "arm": "a2"}, "no input of a success was kept that matches"),
    ],
)
def test_nothing_to_export_is_said(run: Path, names: dict[str, str], complaint: str) -> None:
    with pytest.raises(LedgerError, match=complaint):
        export_inputs(run, Ledger.open(run), run / "out.npz", **names)


def test_a_table_is_exported_as_parquet_or_csv(run: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(run)
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
def test_a_table_that_cannot_be_exported(run: Path, tmp_path: Path, table: str, target: str, complaint: str) -> None:
    with pytest.raises(LedgerError) as caught:
        export_table(Ledger.open(run), table, tmp_path / target)
    assert complaint in str(caught.value)


def test_inputs_that_cannot_be_written(run: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        export_inputs(run, Ledger.open(run), tmp_path / "none" / "out.npz")


def test_the_inputs_of_a_model_are_deleted_and_its_rows_stay(run: Path) -> None:
    assert delete_inputs(run, Ledger.open(run), model="plain") == 2
    assert [row[0] for row in exported(run)] == ["other"]
    assert Ledger.open(run).outcomes(where="model = 'plain'").num_rows == 3
    assert delete_inputs(run, Ledger.open(run), model="plain") == 0


def test_every_input_of_a_sample_is_deleted_and_the_others_stay(run: Path) -> None:
    assert delete_inputs(run, Ledger.open(run), sample="s1") == 3, "two cells and the shard"
    assert not cell_inputs(run, "aa").exists()
    left = read_inputs(shard_inputs(run, "sh"))
    assert list(left) == ["s2", "s3"]
    assert (left["s3"] == image(0.3)).all()
    assert [row[2] for row in exported(run)] == ["s3"]


@pytest.mark.parametrize("names", [{}, {"model": "plain", "sample": "s1"}])
def test_what_to_delete_must_be_said(run: Path, names: dict[str, str]) -> None:
    with pytest.raises(LedgerError, match="say either a model or a sample"):
        delete_inputs(run, Ledger.open(run), **names)
    assert len(list((run / "inputs").rglob("*.npz"))) == 5


def test_nothing_is_deleted_while_somebody_writes(run: Path) -> None:
    with locked(run), pytest.raises(LedgerError, match="is writing to this folder"):
        delete_inputs(run, Ledger.open(run), model="plain")
    assert cell_inputs(run, "aa").exists()
