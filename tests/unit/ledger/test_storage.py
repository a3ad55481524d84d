"""Where a ledger's segments go: through its storage, and nowhere else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, Storage, readable_storage, writable_storage
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.segments import segment_folders

Tables = dict[str, Any]


class Recording(Storage):
    """Notes which segments are stored; refuses them once it is full."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.names: list[str] = []
        self.full = False

    def push(self, segment: Path) -> None:
        if self.full:
            raise LedgerError("the storage is full")
        self.names.append(segment.name)

    def drop(self, names: Any) -> None:
        self.names = [name for name in self.names if name not in names]


def test_a_folder_has_nothing_to_fetch(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    assert storage.ledger == tmp_path / "ledger"
    assert storage.fetch(tmp_path / "inputs") == tmp_path / "inputs"
    assert Storage.of(tmp_path) == Storage.of(storage) == storage


def test_an_open_storage_is_not_opened_again(tmp_path: Path) -> None:
    storage = Recording(tmp_path / "run")
    assert readable_storage(storage) is storage
    with writable_storage(storage) as opened:
        assert opened is storage


@pytest.mark.parametrize("name", ["run", "run/ledger"])
def test_a_ledger_is_found_by_its_own_folder_too(name: str, tmp_path: Path) -> None:
    Ledger.open(tmp_path / "run", create=True)
    ledger = Ledger.open(tmp_path / name)
    assert (ledger.path, ledger.storage) == (tmp_path / "run" / "ledger", Storage(tmp_path / "run"))


def test_every_view_of_a_ledger_publishes_to_its_storage(tmp_path: Path, cell: Callable[..., Tables]) -> None:
    storage = Recording(tmp_path / "run")
    ledger = Ledger.open(storage, create=True)
    for view in (ledger, ledger.named(), ledger.of_shards(["s"]), ledger.restricted(models=["m"]), ledger.reopened()):
        view.append(cell(f"c{len(storage.names)}"))
    assert storage.names == [segment.name for segment in segment_folders(ledger.path)]
    assert compact(storage).n_after == 1
    assert storage.names == [segment.name for segment in segment_folders(ledger.path)]


def test_what_could_not_be_stored_was_never_published(tmp_path: Path, cell: Callable[..., Tables]) -> None:
    storage = Recording(tmp_path / "run")
    ledger = Ledger.open(storage, create=True)
    ledger.append(cell("c1"))
    storage.full = True
    with pytest.raises(LedgerError, match="the storage is full"):
        ledger.append(cell("c2"))
    assert storage.names == [segment.name for segment in segment_folders(ledger.path)]
    assert ledger.reopened().finished_cells() == {"c1"}


def test_a_reopened_ledger_sees_what_was_appended_since(tmp_path: Path, cell: Callable[..., Tables]) -> None:
    ledger = Ledger.open(tmp_path / "run", create=True)
    assert ledger.finished_cells() == set()
    ledger.append(cell("c1"))
    assert (ledger.finished_cells(), ledger.reopened().finished_cells()) == (set(), {"c1"})
