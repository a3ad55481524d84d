"""Deleting stored inputs: what is asked for, and nothing else."""

from pathlib import Path

import numpy as np
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked
from advrisk.ledger.exchange.exporting import export_inputs
from advrisk.ledger.inputs import cell_inputs, read_inputs, shard_inputs
from advrisk.ledger.maintenance.deleting import delete_inputs


def exported(run: Path, column: str) -> list[str]:
    target = run.parent / "out.npz"
    export_inputs(run, Ledger.open(run), target)
    with np.load(target, allow_pickle=False) as kept:
        return [str(name) for name in kept[column]]


def test_the_inputs_of_a_model_are_deleted_and_its_rows_stay(kept_run: Path) -> None:
    assert delete_inputs(kept_run, Ledger.open(kept_run), model="plain") == 2
    assert exported(kept_run, "model") == ["other"]
    assert Ledger.open(kept_run).outcomes(where="model = 'plain'").num_rows == 3
    assert delete_inputs(kept_run, Ledger.open(kept_run), model="plain") == 0


def test_every_input_of_a_sample_is_deleted_and_the_others_stay(kept_run: Path) -> None:
    assert delete_inputs(kept_run, Ledger.open(kept_run), sample="s1") == 3, "two cells and the shard"
    assert not cell_inputs(kept_run, "aa").exists()
    left = read_inputs(shard_inputs(kept_run, "sh"))
    assert list(left) == ["s2", "s3"]
    assert (left["s3"] == np.full((1, 2, 2), 0.3, np.float32)).all()
    assert exported(kept_run, "sample") == ["s3"]


@pytest.mark.parametrize("names", [{}, {"model": "plain", "sample": "s1"}])
def test_what_to_delete_must_be_said(kept_run: Path, names: dict[str, str]) -> None:
    with pytest.raises(LedgerError, match="say either a model or a sample"):
        delete_inputs(kept_run, Ledger.open(kept_run), **names)
    assert len(list((kept_run / "inputs").rglob("*.npz"))) == 5


def test_nothing_is_deleted_while_somebody_writes(kept_run: Path) -> None:
    with locked(kept_run), pytest.raises(LedgerError, match="is writing to this folder"):
        delete_inputs(kept_run, Ledger.open(kept_run), model="plain")
    assert cell_inputs(kept_run, "aa").exists()
