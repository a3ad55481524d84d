"""Looking after ledgers by URL, from Python, against a real S3 server: what is done is done there, not to a copy."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pyarrow import fs

from advrisk.ledger import (
    Ledger,
    SegmentWriter,
    check,
    compact,
    diff_ledgers,
    merge_ledgers,
    repair,
    table_from,
    writable_storage,
    writer,
)
from advrisk.ledger.inputs import cell_inputs, write_inputs

from .servers import keys, s3_served


@pytest.fixture(scope="module")
def storage() -> Iterator[fs.S3FileSystem]:
    with s3_served() as made:
        yield made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A run elsewhere: a model's cells, each a segment of its own, with inputs."""
    monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path / "cache"))

    def made(url: str, *models: str) -> str:
        with writable_storage(url) as opened:
            ledger = Ledger.open(opened, create=True)
            for model in models:
                ledger.append({"arms": table_from("arms", {"model": [model], "arm": ["push"], "recipe": ["r"]})})
                write_inputs(cell_inputs(opened.folder, f"cell-{model}"), ["s1"], np.ones((1, 3)))
                ledger.append(finished(f"cell-{model}", model))
        return url

    return made


def finished(cell: str, model: str, sample: str = "s1") -> dict[str, object]:
    outcome = {"cell": [cell], "model": [model], "arm": ["push"], "sample": [sample], "repeat": [0]}
    row = {"cell": cell, "recipe": "r", "model": model, "arm": "push", "repeat": 0, "n_samples": 1, "n_errors": 0}
    return {
        "outcomes": table_from("outcomes", outcome | {"kind": ["attack"], "outcome": ["resisted"]}),
        "cells": table_from("cells", {name: [value] for name, value in row.items()}),
    }


def zips(storage: fs.S3FileSystem, url: str) -> list[str]:
    return [name for name in keys(storage, url.removeprefix("s3://")) if name.endswith(".zip")]


def test_segments_are_merged_there(storage: fs.S3FileSystem, run: Callable[..., str]) -> None:
    url = run("s3://bucket/compact", "a", "b")
    assert compact(url).n_after == 1
    assert len(zips(storage, url)) == 1
    assert check(url).findings == []


def test_damage_is_repaired_there(storage: fs.S3FileSystem, run: Callable[..., str]) -> None:
    url = run("s3://bucket/repair", "a", "b")
    storage.delete_file("bucket/repair/inputs/cells/ce/cell-a.npz")
    assert check(url).damaged
    assert repair(url).damaged
    assert not check(url).damaged
    assert Ledger.open(url).finished_cells() == {"cell-b"}
    assert Ledger.open(url).query("SELECT DISTINCT cell FROM all_cells").num_rows == 1


def test_ledgers_are_merged_there_and_from_there(
    storage: fs.S3FileSystem, run: Callable[..., str], tmp_path: Path
) -> None:
    one, other = run("s3://bucket/one", "a"), run("s3://bucket/other", "b")
    both = merge_ledgers(one, other, out=tmp_path / "both")
    assert both.n_cells == 1
    assert not diff_ledgers(one, both.folder).equal
    merge_ledgers(one, other)
    assert diff_ledgers(one, both.folder).equal
    assert "inputs/cells/ce/cell-b.npz" in keys(storage, "bucket/one")


def test_segments_are_merged_there_while_a_run_goes_on(
    storage: fs.S3FileSystem, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = run("s3://bucket/running", "a")
    monkeypatch.setattr(writer, "MERGE_EVERY", 5)
    reader = Ledger.open(url)
    with writable_storage(url) as opened, SegmentWriter(Ledger.open(opened), every_s=0) as open_writer:
        for number in range(8):
            open_writer.add(finished(f"more-{number}", "a", f"t{number}"))
            open_writer.publish()
            seen = Ledger.open(url).query("SELECT count(*) AS n, count(DISTINCT cell) AS d FROM outcomes").to_pylist()
            assert seen == [{"n": number + 2, "d": number + 2}]
        assert len(zips(storage, url)) < 5
        assert reader.outcomes().num_rows >= 1
    assert check(url).findings == []
