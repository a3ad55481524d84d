"""Kept inputs: stored by sample, in full or not at all."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger.inputs import cell_inputs, read_inputs, shard_inputs, write_inputs

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7


def test_files_lie_beside_the_ledger_under_the_name_of_their_cell_or_shard(tmp_path: Path) -> None:
    assert cell_inputs(tmp_path, "3f2a") == tmp_path / "inputs" / "cells" / "3f" / "3f2a.npz"
    assert shard_inputs(tmp_path, "9c1b") == tmp_path / "inputs" / "shards" / "9c1b.npz"


def test_inputs_come_back_by_sample_to_the_last_bit(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.npz"
    write_inputs(file, ["digits/000001", "é"], X)
    found = read_inputs(file)
    assert list(found) == ["digits/000001", "é"]
    assert all(type(name) is str for name in found)
    for row, name in enumerate(found):
        assert found[name].dtype == np.float32
        assert (found[name] == X[row]).all()
    assert list(file.parent.iterdir()) == [file], "nothing else is left"


def test_no_input_is_stored_as_none(tmp_path: Path) -> None:
    write_inputs(tmp_path / "a.npz", [], X[:0])
    assert read_inputs(tmp_path / "a.npz") == {}


def test_writing_again_replaces(tmp_path: Path) -> None:
    write_inputs(tmp_path / "a.npz", ["s1", "s2"], X)
    write_inputs(tmp_path / "a.npz", ["s2"], X[:1])
    assert list(read_inputs(tmp_path / "a.npz")) == ["s2"]


def test_a_failure_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.npz"
    write_inputs(file, ["s1", "s2"], X)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(LedgerError, match=r"a\.npz: inputs could not be stored: No space left on device"):
        write_inputs(file, ["s3"], X[:1])
    monkeypatch.undo()
    assert list(read_inputs(file)) == ["s1", "s2"]
    assert list(tmp_path.iterdir()) == [file]


def test_inputs_that_were_not_kept(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="were not kept; set `keep_inputs: successful` or `all`"):
        read_inputs(tmp_path / "none.npz")


@pytest.mark.parametrize("keep", [0, 1, 30, -40, -1])
def test_a_truncated_file_is_a_ledger_error(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "a.npz"
    write_inputs(file, ["s1", "s2"], X)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(LedgerError, match=r"a\.npz: cannot be read"):
        read_inputs(file)


def test_a_damaged_file_is_a_ledger_error_or_unharmed(tmp_path: Path) -> None:
    """Every byte of the compressed inputs in turn: found out, or of no consequence."""
    file = tmp_path / "a.npz"
    write_inputs(file, ["s1", "s2"], X)
    content = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        start = archive.getinfo("x.npy").header_offset + 30 + len("x.npy")
        end = start + archive.getinfo("x.npy").compress_size
    refused = 0
    for place in range(start, end):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            found = read_inputs(file)
        except LedgerError:
            refused += 1
        else:
            assert all((found[name] == X[row]).all() for row, name in enumerate(found))
    assert refused > (end - start) / 2


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", sample=np.array([{"a": 1}], object), x=X[:1])
    with pytest.raises(LedgerError, match="holds Python objects"):
        read_inputs(tmp_path / "a.npz")


@pytest.mark.parametrize("arrays", [{"sample": np.array(["s1"])}, {"sample": np.array(["s1"]), "x": X}, {"x": X}])
def test_a_file_of_other_arrays_is_a_ledger_error(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(LedgerError, match=r"a\.npz: cannot be read"):
        read_inputs(tmp_path / "a.npz")
