"""Faults, one after another, each in a trial of its own, and what came of them."""

import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.faults import ray_kinds as ray_kinds  # they register themselves
from tests.faults import storage_kinds as storage_kinds
from tests.faults.kinds import KINDS, UNABLE, MissedError
from tests.faults.processes import cpu_s
from tests.faults.study import Studied, written
from tests.faults.trial import DONE, Reference, Trial

MOST_TRIES = 4  # so many trials for each fault, as some come too late


@dataclass
class Tally:
    """What came of the faults of one kind."""

    kind: str
    n: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    bugs: list[tuple[int, str]] = field(default_factory=list)  # trial, and what was not as it should be
    n_missed: int = 0  # trials whose moment came too late, which are not counted
    skipped: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0

    def __str__(self) -> str:
        told = ", ".join(f"{n} {what}" for what, n in sorted(self.outcomes.items()))
        told = f"**NOT INJECTED**: {self.skipped}" if self.skipped else told
        return f"| {self.kind} | {self.n} | {told} | {self.n - len(self.bugs)} |"


@dataclass(frozen=True)
class Ground:
    """A study and its reference, shared by the trials; each has a folder of its own below `home`."""

    home: Path
    studied: Studied
    reference: Reference


@contextmanager
def prepared(home: Path | None = None) -> Iterator[Ground]:
    """Write the study, and run it without a fault."""
    with tempfile.TemporaryDirectory(prefix="af-", dir=home) as name:
        folder = Path(name)
        (folder / "reference").mkdir()
        studied = written(folder / "study")
        trial = Trial(folder / "reference", studied, Reference(folder, 0.0), np.random.default_rng(0))
        run = trial.run()
        trial.expect(run, DONE)
        yield Ground(folder, studied, Reference(trial.out, time.monotonic() - run.began))


def inject(kind: str, n: int, ground: Ground, *, seed: int = 0, first: int = 0) -> Tally:
    """So many faults of a kind; the numbers drawn for a trial depend on seed, kind and its number alone."""
    tally, number = Tally(kind, skipped=UNABLE[kind]()), first
    began, began_cpu = time.monotonic(), cpu_s()
    while tally.n < n and not tally.skipped and number - first < MOST_TRIES * n:
        home = ground.home / f"t{number}"
        home.mkdir()
        rng = np.random.default_rng([seed, number, *kind.encode()])
        try:
            tally.outcomes[_tried(kind, Trial(home, ground.studied, ground.reference, rng))] += 1
        except MissedError:
            tally.n_missed += 1
        except Exception as error:
            tally.bugs.append((number, "".join(traceback.format_exception_only(error)).strip()))
        tally.n = sum(tally.outcomes.values()) + len(tally.bugs)
        shutil.rmtree(home, ignore_errors=True)
        number += 1
    tally.wall_s, tally.cpu_s = time.monotonic() - began, cpu_s() - began_cpu
    return tally


def _tried(kind: str, trial: Trial) -> str:
    try:
        what = KINDS[kind](trial)
        trial.verify()
        return what
    finally:
        for command in trial.commands:
            command.end()
