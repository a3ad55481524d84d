"""Folders that last as long as their process."""

import subprocess
import sys
from pathlib import Path

from advrisk.run.executors.scratch import Scratch, sweep

OWNER = """
import sys
from pathlib import Path
from advrisk.run.executors.scratch import Scratch
print(Scratch("mine-", Path(sys.argv[1])).path, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_there_until_it_is_removed(tmp_path: Path) -> None:
    scratch = Scratch("mine-", tmp_path)
    (scratch.path / "file").write_text("here")
    assert scratch.path.name.startswith("mine-")
    sweep("mine-", tmp_path)
    assert (scratch.path / "file").exists(), "its owner is alive"
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_leaves_behind_is_removed_by_the_next(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        sweep("mine-", tmp_path)
        assert left.is_dir()
        process.kill()
    (tmp_path / "other-1").mkdir()
    mine = Scratch("mine-", tmp_path)
    assert not left.exists()
    assert (tmp_path / "other-1").exists()
    mine.remove()
