"""Local copies to read: kept inputs come once they are needed, and nothing is written to them.

A folder stands in for the object storage here; `tests/e2e/test_object_storage.py` has a server.
"""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import fs

from advrisk.core.errors import LedgerError, RunError
from advrisk.ledger import Ledger, Storage, readable_storage, table_from
from advrisk.ledger.inputs import cell_inputs, inputs_folder, read_inputs, write_inputs
from advrisk.ledger.sync.remote import Remote

URL = "s3://bucket/run"
CELLS = ("3f2a", "9c1b")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with the inputs of two cells, and no segment."""
    folder = tmp_path / "bucket" / "run"
    for cell in CELLS:
        write_inputs(cell_inputs(folder, cell), ["s1"], np.ones((1, 3)))
    (folder / "study.yaml").write_text("name: signs\n")
    monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Remote, "open", lambda url: Remote(url, fs.LocalFileSystem(), str(folder)))
    return folder


def held(storage: Storage) -> list[str]:
    return sorted(path.stem for path in storage.folder.rglob("*.npz"))


def test_all_inputs_are_here_unless_fewer_are_needed(bucket: Path) -> None:
    assert held(readable_storage(URL, inputs=())) == []
    assert held(readable_storage(URL, inputs=("shards",))) == []
    storage = readable_storage(URL)
    assert held(storage) == list(CELLS)
    assert (storage.folder / "study.yaml").read_text() == "name: signs\n"


def test_inputs_are_fetched_file_by_file_or_all_at_once(bucket: Path) -> None:
    storage = readable_storage(URL, inputs=())
    path = storage.fetch(cell_inputs(storage.folder, "3f2a"))
    assert read_inputs(path).keys() == {"s1"}
    assert held(storage) == ["3f2a"]
    assert not storage.fetch(cell_inputs(storage.folder, "0000")).exists(), "was not kept"
    storage.fetch(inputs_folder(storage.folder))
    assert held(storage) == list(CELLS)


def test_inputs_that_were_deleted_meanwhile_are_not_there_and_others_are_missed(
    bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = readable_storage(URL, inputs=())
    cell_inputs(bucket, "3f2a").unlink()
    assert not storage.fetch(cell_inputs(storage.folder, "3f2a")).exists()

    def down(*_: object) -> None:
        raise LedgerError("the network is down")

    monkeypatch.setattr(Remote, "fetch", down)
    with pytest.raises(RunError, match="the network is down"):
        storage.fetch(cell_inputs(storage.folder, "9c1b"))


def test_a_copy_to_read_takes_no_segment(bucket: Path) -> None:
    ledger = Ledger.open(URL, create=True)
    with pytest.raises(LedgerError, match=r"s3://bucket/run: was opened to be read; .*ledger\.writable_storage\(url\)"):
        ledger.append({"models": table_from("models", {"model": ["a"]})})
    assert list((ledger.path / "segments").iterdir()) == []
