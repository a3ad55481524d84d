"""What a segment says of itself may have been written by anybody: names in it never lead out of the run's folder."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, SegmentWriter, Storage
from advrisk.ledger.inputs import deleted_inputs, unreadable_inputs
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.maintenance.repairing import repair
from advrisk.ledger.manifest import (
    Manifest,
    Stamp,
    manifest_text,
    read_manifest,
    read_replaces,
    stamp_file,
)
from advrisk.ledger.segments import segment_folders, tidy

Tables = dict[str, Any]
DEEP = "[" * 100_000


@pytest.fixture
def segment(ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]) -> Path:
    """The last of three."""
    ledger.append(arms(("plain", "push", "r1")))
    ledger.append(cell("c1"))
    return ledger.append(cell("c2", repeat=1))


def forge(segment: Path, *, replaces: Any = None, inputs: dict[str, Stamp] | None = None) -> None:
    """Write what a stranger might, with digests that are right."""
    if replaces is not None:
        (segment / "replaces.json").write_text(json.dumps({"segments": replaces, "aside": False}))
    files = {file.name: stamp_file(file) for file in segment.iterdir() if file.name != "segment.json"}
    (segment / "segment.json").write_text(manifest_text(Manifest(files, inputs or {})))


@pytest.mark.parametrize("name", ["{victim}", "../../../victim", "", "00000001-abcdef0/", "{own}"])
def test_a_segment_takes_the_place_of_segments_and_of_nothing_else(segment: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious.txt").write_text("mine")
    run = segment.parents[2]
    forge(segment, replaces=[name.format(victim=victim, own=segment.name)])
    for act in (lambda: compact(run), lambda: tidy(Storage(run)), lambda: SegmentWriter(Ledger(Storage(run)))):
        with pytest.raises(LedgerError, match=r"replaces.json: cannot be read .*is no other segment.*--repair"):
            act()
    (finding,) = check(run).findings
    assert (Path(finding.place).name, finding.damage) == ("replaces.json", True)
    repair(run)
    assert (victim / "precious.txt").read_text() == "mine"
    assert Ledger.open(run).finished_cells() == {"c1", "c2"}
    assert not check(run).damaged


@pytest.mark.parametrize("name", ["{secret}", "../secret.npz", "inputs/../../secret.npz", "inputs"])
def test_inputs_lie_in_the_folder_of_inputs(segment: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.npz"
    secret.write_text("mine")
    run = segment.parents[2]
    forge(segment, inputs={name.format(secret=secret): Stamp(1, "0")})
    with pytest.raises(LedgerError, match=r"segment.json: cannot be read .*is no file of a run"):
        read_manifest(segment)
    assert check(run).damaged
    repair(run)
    assert secret.read_text() == "mine"
    assert Ledger.open(run).finished_cells() == {"c1"}


def test_a_list_that_was_put_there_later_hides_nothing(segment: Path) -> None:
    run = segment.parents[2]
    (segment / "replaces.json").write_text(
        json.dumps({"segments": [segment_folders(run / "ledger")[1].name], "aside": False})
    )
    assert check(run).damaged
    repair(run)
    assert Ledger.open(run).finished_cells() == {"c1", "c2"}
    assert not check(run).damaged


def test_files_of_a_segment_lie_in_its_folder(segment: Path) -> None:
    text = manifest_text(Manifest({"/dev/zero": Stamp(1, "0")}))
    (segment / "segment.json").write_text(text)
    assert [finding.kind for finding in check(segment.parents[2]).findings] == ["unreadable"]


@pytest.mark.parametrize("text", [DEEP, '{"files": 3, "inputs": {}}', "\ud800"])
@pytest.mark.parametrize("name", ["replaces.json", "segment.json"])
def test_whatever_stands_there_is_told_and_repaired(segment: Path, name: str, text: str) -> None:
    (segment / name).write_bytes(text.encode(errors="surrogatepass"))
    run = segment.parents[2]
    with pytest.raises(LedgerError, match=rf"{name}: (cannot be read|was altered)"):
        read_replaces(segment) if name == "replaces.json" else read_manifest(segment)
    assert check(run).damaged
    repair(run)
    assert not check(run).damaged
    assert len(segment_folders(run / "ledger")) >= 2


def test_sizes_are_numbers(segment: Path) -> None:
    stamps = {"cells.parquet": {"bytes": "many", "digest": "x"}}
    content = {"files": stamps, "inputs": {}}
    (segment / "segment.json").write_text(json.dumps(content | {"digest": digest(content)}))
    with pytest.raises(LedgerError, match="a size or a digest is none"):
        read_manifest(segment)


@pytest.mark.parametrize("text", [DEEP, "3", "["])
def test_a_list_of_deleted_inputs_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "deleted.json").write_text(text)
    with pytest.raises(LedgerError, match=r"deleted.json: cannot be read .*delete it"):
        deleted_inputs(tmp_path)


def test_inputs_that_are_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"123")
    data = bytearray(path.read_bytes())
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + flags] |= 1
    path.write_bytes(data)
    assert "encrypted" in unreadable_inputs(path)
