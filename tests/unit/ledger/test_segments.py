"""Segments appear in full or not at all, whatever happens while they are written."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, SegmentWriter, Storage
from advrisk.ledger.segments import publish, remove_unfinished, segment_folders

Tables = dict[str, Any]
FILES = ["cells.parquet", "outcomes.parquet", "outputs.parquet", "segment.json"]


class Crash(BaseException):
    """The process ends here."""


def unfinished(ledger: Ledger) -> list[str]:
    return sorted(entry.name for entry in (ledger.path / "segments").iterdir() if entry.name.startswith("."))


def cells(ledger: Ledger) -> set[str]:
    return Ledger.open(ledger.path).finished_cells()


def test_a_segment_is_a_folder_of_parquet_files(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    segment = publish(ledger.storage, cell("c1"))
    assert segment_folders(ledger.path) == [segment]
    assert segment.parent == ledger.path / "segments"
    assert sorted(file.name for file in segment.iterdir()) == FILES


def test_the_schema_version_is_in_every_file(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    for file in publish(ledger.storage, cell("c1")).glob("*.parquet"):
        assert pq.read_schema(file).metadata[b"advrisk.schema"] == b"7"


def test_numbers_rise_so_that_the_later_segment_sorts_later(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    made = [publish(ledger.storage, cell(f"c{i}")) for i in range(12)]
    assert segment_folders(ledger.path) == made
    assert [int(segment.name.split("-")[0]) for segment in made] == list(range(1, 13))


def test_numbers_rise_also_after_segments_were_removed(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    first, second = publish(ledger.storage, cell("c1")), publish(ledger.storage, cell("c2"))
    for file in first.iterdir():
        file.unlink()
    first.rmdir()
    assert publish(ledger.storage, cell("c3")).name > second.name


def test_no_folder_no_segments(tmp_path: Path) -> None:
    assert segment_folders(tmp_path / "none") == []
    remove_unfinished(tmp_path / "none")


@pytest.mark.parametrize("name", ["notes.txt", ".DS_Store", "lost+found", "00000002-abcdef01.bak", "zz"])
def test_what_others_leave_in_the_folder_does_no_harm(ledger: Ledger, cell: Callable[..., Tables], name: str) -> None:
    publish(ledger.storage, cell("c1"))
    (ledger.path / "segments" / name).write_text("not ours")
    assert publish(ledger.storage, cell("c2")).name.startswith("00000002-")
    assert cells(ledger) == {"c1", "c2"}


def test_everything_is_on_disk_before_it_has_its_name(
    ledger: Ledger, cell: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_fsync = os.fsync

    def fsync(handle: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name.split("-")[0])
        real_fsync(handle)

    def named(name: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(source: Any, target: Any) -> None:
            steps.append(name)
            real(source, target)

        return call

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", named("rename", os.rename))
    monkeypatch.setattr(os, "replace", named("replace", os.replace))
    publish(ledger.storage, cell("c1"))
    before, after = steps[: steps.index("rename")], steps[steps.index("rename") + 1 :]
    assert sorted(before[:-1]) == FILES
    assert before[-1] == ".unfinished", "the folder's entries, once the files are there"
    assert after[0] == "segments", "the new name itself"
    assert after[1:] == [f".history.jsonl.{os.getpid()}", "replace", "ledger"], "and only then its line"


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), Crash()])
def test_a_failure_at_any_step_leaves_what_was_published_before(
    ledger: Ledger,
    cell: Callable[..., Tables],
    arms: Callable[..., Tables],
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    failure: BaseException,
) -> None:
    """Steps 0 to 3 are the four files, 4 is the folder, 5 the rename; an OSError is told, a crash is not."""
    publish(ledger.storage, cell("c1") | arms(("plain", "push", "r1")))
    real = {"fsync": os.fsync, "rename": os.rename}
    done: list[str] = []

    def stops(name: str) -> Callable[..., None]:
        def call(*given: Any) -> None:
            if len(done) == step:
                raise failure
            done.append(name)
            real[name](*given)

        return call

    with monkeypatch.context() as patch:
        for name in real:
            patch.setattr(os, name, stops(name))
        with pytest.raises(LedgerError if isinstance(failure, OSError) else Crash) as caught:
            publish(ledger.storage, cell("c2"))
    if isinstance(failure, OSError):
        assert "a segment could not be written (No space left on device)" in str(caught.value)
        assert "what was published before is intact" in str(caught.value)
        assert unfinished(ledger) == []
    else:
        assert len(unfinished(ledger)) == 1
    assert cells(ledger) == {"c1"}
    assert Ledger.open(ledger.path).outcomes(["cell"])["cell"].to_pylist() == ["c1", "c1"]
    with SegmentWriter(Ledger.open(ledger.path)) as writer:
        assert unfinished(ledger) == [], "the next writer tidies up"
        writer.add(cell("c2"))
    assert cells(ledger) == {"c1", "c2"}


def test_a_writer_removes_only_what_is_unfinished(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    segment = publish(ledger.storage, cell("c1"))
    left = ledger.path / "segments" / ".unfinished-00000002-abcdef01"
    left.mkdir()
    (left / "outcomes.parquet").write_bytes(b"half a fi")
    assert cells(ledger) == {"c1"}, "readers do not look at it"
    remove_unfinished(ledger.path)
    assert list((ledger.path / "segments").iterdir()) == [segment]


def test_a_folder_that_vanished_is_made_again(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    (ledger.path / "segments").rmdir()
    publish(ledger.storage, cell("c1"))
    assert cells(ledger) == {"c1"}


def test_a_folder_that_cannot_be_made_is_a_ledger_error(tmp_path: Path, cell: Callable[..., Tables]) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerError, match="a segment could not be written"):
        publish(Storage(tmp_path, "file"), cell("c1"))


FULL_DISK = """
import json, pathlib, resource, signal, sys
import numpy as np
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, SegmentWriter, locked, table_from
from advrisk.ledger.inputs import write_inputs

def tables(cell, n):
    noise = np.random.default_rng(0).random(n)  # does not compress
    columns = {"cell": [cell] * n, "model": ["plain"] * n, "arm": ["push"] * n, "repeat": [0] * n, "d_linf": noise}
    columns |= {"sample": [f"s{i}" for i in range(n)], "outcome": ["success"] * n}
    row = {"cell": [cell], "recipe": ["r1"], "model": ["plain"], "arm": ["push"], "n_errors": [0]}
    return {"outcomes": table_from("outcomes", columns), "cells": table_from("cells", row)}

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

def said(action):
    try:
        action()
    except LedgerError as error:
        return str(error)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = pathlib.Path(sys.argv[1])
answers = {}
ledger = Ledger.open(folder, create=True)
arm = {"arms": table_from("arms", {"model": ["plain"], "arm": ["push"], "recipe": ["r1"]})}
ledger.append(tables("before", 3) | arm)
limit(20_000)

def write():
    with SegmentWriter(ledger) as writer:
        writer.add(tables("too large", 50_000))
        writer.publish()

answers["append"] = said(write)
noise = np.random.default_rng(0).random((1, 9999))
answers["inputs"] = said(lambda: write_inputs(folder / "inputs" / "a.npz", ["s"], noise))
limit(0)

def lock():
    with locked(folder):
        answers["locked"] = True

answers["lock"] = said(lock)
limit(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
answers["left"] = sorted(path.name for path in folder.rglob("*") if path.name.startswith("."))
answers["cells"] = sorted(Ledger.open(folder).finished_cells())
answers["rows"] = Ledger.open(folder).outcomes().num_rows
ledger.append(tables("after", 50_000))
answers["rows after"] = Ledger.open(folder).outcomes().num_rows
print(json.dumps(answers))
"""


def test_a_full_disk_is_told_and_the_ledger_stays_valid(tmp_path: Path) -> None:
    """The system itself refuses to let files grow, as it does when the disk is full."""
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    answers = json.loads(done.stdout)
    assert "a segment could not be written (File too large); what was published before is intact" in answers["append"]
    assert "inputs could not be stored: File too large" in answers["inputs"]
    assert (answers["lock"], answers["locked"]) == (None, True), "the lock needs no room"
    assert answers["left"] == [], "nothing half-written stays"
    assert (answers["cells"], answers["rows"], answers["rows after"]) == (["before"], 3, 50_003)
