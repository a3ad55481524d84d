"""Files that appear in full or not at all, and what the killed leave behind."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import RunError
from advrisk.core.files import (
    make_durable,
    regular,
    remove_unfinished,
    unfinished_folder,
    whole_file,
    whole_folder,
    write_json,
    write_whole,
)
from tests.durability import recorded


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


@pytest.mark.parametrize(
    "write",
    [
        lambda target: write_whole(target, "all of it"),
        lambda target: write_json(target, {"all": "of it"}),
    ],
)
def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], Any]
) -> None:
    steps = recorded(monkeypatch)
    write(tmp_path / "file")
    unfinished = f".file.{os.getpid()}"
    assert steps == [f"fsync {unfinished}", f"rename {unfinished} file", f"fsync {tmp_path.name}"]


def test_a_copy_of_what_lies_elsewhere_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = recorded(monkeypatch)
    with whole_file(tmp_path / "file", durable=False) as path:
        path.write_text("all of it")
    assert steps == [f"rename .file.{os.getpid()} file"]


def test_a_file_that_does_not_reach_the_disk_never_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("earlier")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), whole_file(tmp_path / "file") as path:
        path.write_text("later")
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["earlier"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_fsync_folders_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unable(_: int) -> None:
        raise OSError(number, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unable)
    make_durable(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Invalid argument"):
        make_durable(tmp_path / "file")


def test_a_folder_that_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    program = f"""if True:
        import os, signal
        from pathlib import Path
        from advrisk.core.files import unfinished_folder
        with unfinished_folder(Path({str(tmp_path / "run [1]")!r})) as folder:
            (folder / "half").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", program], check=False)
    others = {".run [1].mine", f".run 1.{2**22 + 1}", ".run [1]"}
    for name in others:
        (tmp_path / name).mkdir()
    assert len(list(tmp_path.iterdir())) == 4
    with unfinished_folder(tmp_path / "run [1]") as folder:
        assert {entry.name for entry in tmp_path.iterdir()} == {*others, folder.name}
    assert {entry.name for entry in tmp_path.iterdir()} == others


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


def test_no_folder_is_made_at_the_root_of_the_file_system(tmp_path: Path) -> None:
    """Whoever runs as root would otherwise fill the disk of the system instead of one that is not mounted."""
    top = Path(f"/nonexist-{os.getpid()}")
    for target in (top / "x.xml", top / "a" / "b" / "x.xml"):
        with pytest.raises(RunError, match=rf"x\.xml: cannot be written: there is no folder {top}; make it first"):
            write_whole(target, "text")
    with pytest.raises(FileNotFoundError), whole_folder(top / "pack"):
        pass
    assert not top.exists()
    assert write_whole(tmp_path / "a" / "b" / "x.xml", "text").read_text() == "text"


def test_a_file_where_a_folder_is_to_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "x.json", tmp_path / "file" / "a" / "x.json"):
        with pytest.raises(
            RunError, match=r"x\.json: the page cannot be written: .*file is a file, and a folder is needed"
        ):
            write_whole(target, "text", "the page")
