"""Archives from outside: what numpy writes is read as numpy reads it, and nothing that a file claims is believed."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from advrisk.core import archives
from advrisk.core.archives import ArchiveError, free_memory, read_archive

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


def test_more_than_the_free_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "a.npz", x=member(np.zeros(10**6)))
    monkeypatch.setattr(archives, "free_memory", lambda: 2**20)
    with pytest.raises(ArchiveError, match=r"unpacks to 0\.0 GiB, and only 0\.0 GiB of memory are free"):
        read_archive(path, max_bytes=10**9)
    monkeypatch.setattr(archives, "free_memory", lambda: None)
    assert read_archive(path, max_bytes=10**9)["x"].size == 10**6


@pytest.mark.skipif(not Path("/proc/meminfo").is_file(), reason="only Linux says how much memory is free")
def test_free_memory_is_some_of_what_the_machine_has() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert 0 < (free_memory() or 0) <= total


def test_a_container_may_have_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 5\ninactive_file 200\nfile 9\n"}
    for name, text in told.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:   9 kB\n")
    monkeypatch.setattr(archives, "Path", lambda name: tmp_path / Path(name).name)
    assert free_memory() == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() == 9 * 1024
    (tmp_path / "meminfo").unlink()
    assert free_memory() is None


PEAK = """
import resource, sys
from pathlib import Path
from advrisk.core.archives import ArchiveError, read_archive
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
n = read_archive(path, max_bytes=2**40)["x"].nbytes
print(n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
resource.setrlimit(resource.RLIMIT_AS, (n // 2, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    read_archive(path, max_bytes=2**40)
except ArchiveError as error:
    print(error)
"""


def test_an_array_is_in_memory_once(tmp_path: Path) -> None:
    """And where there is less memory than it needs, that is told."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", member(np.zeros(96 * 2**20, np.uint8)))
    command = [sys.executable, "-W", "error", "-c", PEAK, str(tmp_path / "a.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    sizes, refused = done.stdout.splitlines()
    n_bytes, peak = map(int, sizes.split())
    assert peak < 1.3 * n_bytes
    assert refused == "there is not enough memory to unpack it"
