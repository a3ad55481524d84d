"""The same study gives the same rows, however it was carried out."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk import Study
from advrisk.core.errors import LedgerError
from advrisk.testing.ledgers import outcome_rows, output_rows

Study_ = dict[str, Any]


@pytest.mark.usefixtures("in_workers")
def test_rows_do_not_depend_on_the_number_of_workers(study: Study_, tmp_path: Path) -> None:
    for workers in (1, 2):
        Study.from_dict(study).run(tmp_path / str(workers), workers=workers)
    assert outcome_rows(tmp_path / "1") == outcome_rows(tmp_path / "2")
    assert output_rows(tmp_path / "1") == output_rows(tmp_path / "2")
    assert len(outcome_rows(tmp_path / "1")) == 2 * 64 * (1 + 4 + 2)


def test_rows_do_not_depend_on_growing_in_steps(study: Study_, tmp_path: Path) -> None:
    for size in (23, 64):  # 23 is no multiple of the shard: the last shard of the first step is a short one
        study["data"]["evaluate"] = size
        Study.from_dict(study).run(tmp_path / "steps")
    Study.from_dict(study).run(tmp_path / "at once")
    grown, whole = outcome_rows(tmp_path / "steps"), outcome_rows(tmp_path / "at once")
    without_cells = [[{**row, "cell": None} for row in rows] for rows in (grown, whole)]
    assert without_cells[0] == without_cells[1]


def test_a_second_run_does_only_what_is_missing(study: Study_, tmp_path: Path) -> None:
    seen: list[Any] = []

    def cells_run() -> int:
        seen.clear()
        Study.from_dict(study).run(tmp_path / "run", on_progress=seen.append)
        return int(seen[-1].n_done)

    n_shards = 4
    assert cells_run() == n_shards * 2 * 7
    assert cells_run() == 0
    study["arms"].append({"attack": "bim", "norm": "linf", "eps": 0.1})
    assert cells_run() == n_shards * 2
    study["models"]["again"] = study["models"]["plain"]
    assert cells_run() == n_shards * 8
    study["data"]["evaluate"] = 80
    assert cells_run() == 1 * 3 * 8
    del study["arms"][-1]
    assert cells_run() == 0


def test_a_sample_cannot_move_from_one_split_to_another(study: Study_, tmp_path: Path) -> None:
    Study.from_dict(study).run(tmp_path / "run")
    study["data"] |= {"evaluate": 10, "calibrate": 490}
    with pytest.raises(LedgerError, match="was used as 'evaluate' in this run and is now 'calibrate'"):
        Study.from_dict(study).run(tmp_path / "run")


def test_a_run_killed_at_random_moments_ends_the_same(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path]
) -> None:
    kill_and_compare(study, tmp_path, write_study, kills=3, seed=11, workers=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_run_killed_twenty_times_ends_the_same(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], seed: int
) -> None:
    study["data"]["evaluate"] = 320
    kill_and_compare(study, tmp_path, write_study, kills=5, seed=seed, workers=2)


def kill_and_compare(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], *, kills: int, seed: int, workers: int
) -> None:
    """Kill the run, hard, at moments between its start and its end; then finish it and compare."""
    Study.from_dict(study).run(tmp_path / "undisturbed")
    file, folder = write_study(study), tmp_path / "disturbed"
    command = [sys.executable, "-m", "advrisk", "run", str(file), "--out", str(folder), "--publish-s", "0"]
    command += ["--workers", str(workers)]
    moments = random.Random(seed)
    segments = folder / "ledger" / "segments"
    for _ in range(kills):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        before = len(list(segments.glob("0*"))) if segments.exists() else 0
        wanted = before + moments.randint(0, 4)
        while process.poll() is None and (not segments.exists() or len(list(segments.glob("0*"))) < wanted):
            time.sleep(0.005)
        time.sleep(moments.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert outcome_rows(folder) == outcome_rows(tmp_path / "undisturbed")
    assert output_rows(folder) == output_rows(tmp_path / "undisturbed")
    assert not list(segments.glob(".*")), "a killed writer's leftovers were not removed"
    assert os.path.exists(folder / "report.html")
