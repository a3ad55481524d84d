"""Repairing a run whose merging was stopped: segments that were merged lie beside the one that took their place."""

import shutil
from pathlib import Path

import pytest

from advrisk.ledger import Ledger
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.maintenance.repairing import repair


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three segments, two of them merged; the first of these is still there."""
    folder = tmp_path / "run"
    for model in "ab":
        path = tmp_path / "outcomes.csv"
        path.write_text(f"model,sample,distance\n{model},1,0.5\n{model},2,0.25\n", encoding="utf-8")
        import_outcomes(path, folder, norm="linf")
    (first, _) = sorted((folder / "ledger" / "segments").iterdir())
    shutil.copytree(first, tmp_path / first.name)
    compact(folder)
    (tmp_path / first.name).rename(first)
    return folder


def merged(run: Path) -> Path:
    return next((run / "ledger" / "segments").glob("*/replaces.json")).parent


def test_what_was_merged_is_not_read_again_after_the_repair(run: Path) -> None:
    (merged(run) / "outcomes.parquet").write_bytes(b"")
    assert repair(run).damaged
    assert not check(run).damaged
    assert Ledger.open(run).outcomes().num_rows == 0, "all cells of the damaged segment are run again"
    assert len(list((run / "ledger" / "aside").iterdir())) == 2


def test_what_was_merged_is_read_where_nobody_knows_into_what(run: Path) -> None:
    (merged(run) / "replaces.json").write_bytes(b"{")
    assert repair(run).damaged
    assert not check(run).damaged
    assert set(Ledger.open(run).outcomes()["model"].to_pylist()) >= {"a"}
