"""Files that appear in full or not at all, and what the killed leave behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advrisk.core.files import regular, remove_unfinished, whole_file


def test_a_file_appears_in_full_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with whole_file(target) as path:
        path.write_text("all of it")
        assert not target.exists()
    assert target.read_text() == "all of it"

    def fail() -> None:
        with whole_file(target) as path:
            path.write_text("half of")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert target.read_text() == "all of it"


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    program = f"""if True:
        import os, signal
        from pathlib import Path
        from advrisk.core.files import whole_file
        with whole_file(Path({str(tmp_path / "deep" / "file.npz")!r})) as path:
            path.write_text("half of it")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    (tmp_path / "deep").mkdir()
    subprocess.run([sys.executable, "-c", program], check=False)
    others = [f".file.npz.{os.getpid()}", ".hidden", "file.1", ".1"]
    for name in others:
        (tmp_path / name).touch()
    assert [entry.name.startswith(".file.npz.") for entry in (tmp_path / "deep").iterdir()] == [True]
    remove_unfinished(tmp_path)
    assert not list((tmp_path / "deep").iterdir())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*others, "deep"])


def test_a_folder_that_is_not_there_has_nothing_unfinished(tmp_path: Path) -> None:
    remove_unfinished(tmp_path / "gone")


def test_what_a_process_left_that_ended_and_was_not_asked_how_is_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert ended.stdout is not None
    ended.stdout.read()  # it has ended, or is about to
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    (tmp_path / f".a.npz.{ended.pid}").touch()
    (tmp_path / f".b.npz.{os.getpid()}").touch()
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f".b.npz.{os.getpid()}"]
    ended.communicate()


def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="is a pipe or a device, not a file"):
            regular(tmp_path / name)
    (tmp_path / "file").touch()
    assert regular(tmp_path / "file") == tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        regular(tmp_path / "none")
