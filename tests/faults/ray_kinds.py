"""Faults of a run on Ray: a real cluster of this machine, which the run starts and ends.

Nothing but the processes differs from the other kinds; these take seconds to start, so there are fewer trials.
"""

import importlib.util
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.faults.kinds import kind, told
from tests.faults.processes import Command, command_line, descendants
from tests.faults.trial import DONE, MISTAKE, Trial

ON_RAY = ("--on", "ray")
_MOST_SEGMENTS = 12


def no_ray() -> str:
    """Why there is no Ray here; empty where there is."""
    return "" if importlib.util.find_spec("ray") else "Ray is not installed"


@kind("Ray worker killed", unable=no_ray)
def ray_worker_killed(trial: Trial) -> str:
    """kill -9 of a worker of the cluster: its cell is done again, and no row says so."""
    run = _on_ray(trial)
    struck = _strike(trial, run, lambda line: line.startswith("ray::RemoteWorker"))
    code = trial.expect(run, DONE)
    return told(trial, code, struck=struck)


@kind("raylet killed", unable=no_ray)
def raylet_killed(trial: Trial) -> str:
    """kill -9 of Ray's own process on the machine: the cluster is gone, and the run ends with it."""
    run = _on_ray(trial)
    struck = _strike(trial, run, lambda line: "/raylet/raylet " in line)
    code = trial.expect(run, DONE, MISTAKE)
    _finish(trial)
    return told(trial, code, struck=struck)


@kind("Ray driver killed", unable=no_ray)
def ray_driver_killed(trial: Trial) -> str:
    """kill -9 of the driver: its cluster ends by itself."""
    run = _on_ray(trial)
    _strike(trial, run, lambda line: "/raylet/raylet " in line, victim=run.pid)
    code = trial.expect(run, DONE, -signal.SIGKILL)
    _finish(trial)
    return told(trial, code, struck=code != DONE)


def _on_ray(trial: Trial) -> Command:
    return trial.run(*ON_RAY, workers=2, prepare=partial(_short_folder, trial.home))


def _finish(trial: Trial) -> None:
    """Go on on Ray or here, which is the same."""
    if trial.rng.random() < 0.5:
        assert not trial.finish()
    else:
        trial.expect(_on_ray(trial), DONE)


def _short_folder(home: Path) -> None:
    os.environ["TMPDIR"] = tempfile.tempdir = str(home)


def _strike(trial: Trial, run: Command, is_meant: Callable[[str], bool], *, victim: int | None = None) -> bool:
    """Kill a process once so many segments are published, or some time after it appeared; whether it was there."""
    n_segments = int(trial.rng.integers(_MOST_SEGMENTS))
    segments = trial.out / "ledger" / "segments"
    while run.is_alive:
        found = [pid for pid in descendants(run.pid) if is_meant(command_line(pid))]
        if found and len(list(segments.glob("0*"))) >= n_segments:
            time.sleep(float(trial.rng.uniform(0, 0.3 if n_segments else 6)))
            with suppress(ProcessLookupError):  # it has ended meanwhile: then another one
                os.kill(victim or trial.one_of(found), signal.SIGKILL)
                return True
        time.sleep(0.02)
    return False
