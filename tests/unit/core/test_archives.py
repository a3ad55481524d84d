"""Archives from outside: what numpy writes is read as numpy reads it, and nothing that a file claims is believed."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from advrisk.core.archives import ArchiveError, read_archive

ARRAYS = {
    "bytes": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "by_column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "text": np.array(["a", "längere"]),
    "nothing": np.zeros((0, 3)),
    "one": np.array(7),
    "wide": np.arange(4, dtype=">i8"),
}


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def member(array: np.ndarray, **header: object) -> bytes:
    """An array as numpy writes it, but for what its header says."""
    target = io.BytesIO()
    written = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(target, written | header)
    return target.getvalue() + array.tobytes()


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read_as_numpy_reads_it(tmp_path: Path, write: object) -> None:
    path = tmp_path / "some.npz"
    write(path, **ARRAYS)  # type: ignore[operator]
    found = read_archive(path, max_bytes=10_000)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        found[name][...] = found[name]  # can be written to, as an array that numpy has read


def test_a_shape_that_the_file_cannot_hold_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", x=member(np.zeros(3), shape=(10**12,)))
    with pytest.raises(ArchiveError, match=r"shape \(1000000000000,\), which is not what it holds"):
        read_archive(path, max_bytes=10_000)


def test_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", x=member(np.zeros(10**6)))
    assert path.stat().st_size < 10_000  # zeros pack well
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        read_archive(path, max_bytes=10**6)


def test_objects_and_strange_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(ArchiveError, match="holds Python objects"):
        read_archive(tmp_path / "a.npz", max_bytes=10_000)
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(ArchiveError, match=r"cannot be read as an \.npz of plain arrays"):
        read_archive(tmp_path / "b.npz", max_bytes=10_000)
    with pytest.raises(ArchiveError, match="not what it holds"):
        read_archive(archive(tmp_path / "c.npz", x=member(np.zeros(3), shape=(-1, 3))), max_bytes=10_000)
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none.npz", max_bytes=1)
