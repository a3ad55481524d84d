"""The kinds of faults. Each injects one into a trial, and says in a few words what came of it.

What is the same for all is in `trial.Trial`: the command is given again until it is finished, and the ledger must then
be that of a run without a fault.
"""

import datetime
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from advrisk.ledger import Ledger
from advrisk.ledger.maintenance.checking import check
from advrisk.testing.ledgers import INCIDENTAL
from tests.faults.processes import Command, descendants
from tests.faults.study import MAX_CELL_S, written
from tests.faults.trial import DONE, ERROR_ROWS, INTERRUPTED, MISTAKE, TOLD, Trial

KINDS: dict[str, Callable[[Trial], str]] = {}
UNABLE: dict[str, Callable[[], str]] = {}  # why a kind cannot be injected here; empty where it can
MISBEHAVIOURS = (
    *("raise", "nan", "one nan", "infinite", "fewer rows", "more classes", "one number", "no tensor"),
    *("out of memory", "exit"),
)
_ALL_PASSES = 110  # about as many as a worker asks of one net
_MOUNT = ("mount", "-t", "tmpfs", "-o", "size=64m", "faults")
JUMPS_S = (-10 * 365 * 86400, -86400, -3600, -61, 61, 3600, 86400, 10 * 365 * 86400)


class MissedError(Exception):
    """The moment was one at which there was nothing to be struck; no fault was injected."""


def kind(name: str, *, unable: Callable[[], str] = str) -> Callable[[Callable[[Trial], str]], Callable[[Trial], str]]:
    """Register a kind; `unable` says why it cannot be injected here, or nothing."""

    def registered(inject: Callable[[Trial], str]) -> Callable[[Trial], str]:
        KINDS[name], UNABLE[name] = inject, unable
        return inject

    return registered


def no_disk() -> str:
    """Why no small disk can be mounted here; empty where one can."""
    with tempfile.TemporaryDirectory() as place:
        try:
            made = subprocess.run([*_MOUNT, place], capture_output=True, text=True, check=False)
        except OSError as error:
            return f"no disk can be mounted here: {error}"
        if made.returncode:
            return f"no disk can be mounted here: {made.stderr.strip()}"
        subprocess.run(["umount", place], check=True)
    return ""


@kind("worker killed")
def worker_killed(trial: Trial) -> str:
    """kill -9 of a worker process: its cell is lost, or, where it had not begun, the run."""
    run = trial.run(workers=2)
    trial.moment()
    victim = _some_worker(trial, run)
    code = trial.expect(run, DONE, MISTAKE, ERROR_ROWS)
    trial.finish()
    return told(trial, code, struck=victim is not None)


@kind("driver killed")
def driver_killed(trial: Trial) -> str:
    """kill -9 of the driver; the command is given again at once, while workers may still be at their last cells."""
    run = trial.run(workers=2)
    trial.moment()
    run.send(signal.SIGKILL)
    code = trial.expect(run, DONE, -signal.SIGKILL)
    trial.finish()
    return told(trial, code, struck=code != DONE)


@kind("all killed")
def all_killed(trial: Trial) -> str:
    """kill -9 of the driver and its workers at once, as when the machine is lost."""
    run = trial.run(workers=2)
    trial.moment()
    for pid in [*descendants(run.pid), run.pid]:
        _kill(pid, signal.SIGKILL)
    code = trial.expect(run, DONE, MISTAKE, ERROR_ROWS, -signal.SIGKILL)
    trial.finish()
    return told(trial, code, struck=code != DONE)


@kind("asked to end")
def asked_to_end(trial: Trial) -> str:
    """SIGTERM or SIGINT (Ctrl-C) to the driver."""
    number = trial.one_of([signal.SIGTERM, signal.SIGINT])
    run = trial.run()
    trial.moment()
    run.send(number)
    code = trial.expect(run, DONE, INTERRUPTED, -signal.SIGTERM)
    trial.finish()
    return told(trial, code, struck=code != DONE)


@kind("frozen")
def frozen(trial: Trial) -> str:
    """The driver, or a worker, stands still for up to a second: nothing may come of it."""
    run = trial.run(workers=2)
    trial.moment()
    victim = trial.one_of([run.pid, *descendants(run.pid)])
    _kill(victim, signal.SIGSTOP)
    time.sleep(float(trial.rng.uniform(0.1, 1)))
    _kill(victim, signal.SIGCONT)
    return TOLD[trial.expect(run, DONE)]


@kind("disk full", unable=no_disk)
def disk_full(trial: Trial) -> str:
    """A disk that is full at some point; later it is made larger."""
    with _small_disk(trial.home / "disk") as resize:
        trial.out = trial.home / "disk" / "run"
        resize(int(trial.rng.integers(4, 400)) * 4096)
        code = trial.expect(trial.run(report=trial.rng.random() < 0.2), DONE, MISTAKE, ERROR_ROWS)
        resize(64 * 2**20)
        trial.finish()
        trial.verify()  # here, as long as the disk is there
    trial.out = trial.reference.folder
    return TOLD[code]


@kind("files too large")
def files_too_large(trial: Trial) -> str:
    """The system refuses to write more than so many bytes into one file."""
    limit = int(trial.rng.integers(1000, 16000))
    code = trial.expect(trial.run(prepare=partial(_limit_files, limit)), DONE, MISTAKE, ERROR_ROWS)
    trial.finish()
    return TOLD[code]


@kind("model hangs")
def model_hangs(trial: Trial) -> str:
    """A pass that does not end: the cell's rows say `timeout`, and no others."""
    trial.studied = written(trial.home / "limited", max_cell_s=MAX_CELL_S)
    return _misbehaving(trial, "hang", {"timeout"})


@kind("model misbehaves")
def model_misbehaves(trial: Trial) -> str:
    """A pass that raises, ends the process, or answers nonsense: rows of one cell say `error`, and no others."""
    return _misbehaving(trial, trial.one_of([*MISBEHAVIOURS]), {"error"})


@kind("files damaged")
def files_damaged(trial: Trial) -> str:
    """Bytes flipped, a file truncated, grown or lost, in a segment or among the kept inputs of a finished run."""
    shutil.copytree(trial.reference.folder, trial.out)
    _damage_a_file(trial)
    assert check(trial.out).damaged, "the check sees nothing"
    trial.expect(trial.command("ledger", "check", trial.out, "--repair"), DONE)
    left = [finding for finding in check(trial.out).findings if finding.damage]
    assert not left, left
    assert not trial.finish()
    return "found and repaired"


@kind("segment lost")
def segment_lost(trial: Trial) -> str:
    """A whole segment is gone: the history tells of it, and its cells are run again."""
    shutil.copytree(trial.reference.folder, trial.out)
    shutil.rmtree(trial.one_of(sorted((trial.out / "ledger" / "segments").iterdir())))
    assert check(trial.out).damaged, "nothing misses it"
    trial.expect(trial.command("ledger", "check", trial.out, "--repair"), DONE)
    assert not trial.finish()
    return "found and repaired"


@kind("repair killed")
def repair_killed(trial: Trial) -> str:
    """`ledger check --repair` of a damaged run is killed; the second repair finishes the first."""
    shutil.copytree(trial.reference.folder, trial.out)
    for _ in range(3):
        _damage_a_file(trial)
    repair = trial.command("ledger", "check", trial.out, "--repair")
    time.sleep(float(trial.rng.uniform(0, 0.2 * trial.reference.length_s)))
    repair.send(signal.SIGKILL)
    code = trial.expect(repair, DONE, -signal.SIGKILL)
    trial.expect(trial.command("ledger", "check", trial.out, "--repair"), DONE)
    assert not trial.finish()
    return told(trial, code, struck=code != DONE)


@kind("compacting killed")
def compacting_killed(trial: Trial) -> str:
    """`ledger compact` is killed, at a moment of the time that it takes a copy of the run."""
    largest = ("--largest-mb", trial.one_of([0.02, 0.05, 64]))
    shutil.copytree(trial.reference.folder, trial.home / "whole")
    shutil.copytree(trial.reference.folder, trial.out)
    whole = trial.command("ledger", "compact", trial.home / "whole", *largest)
    trial.expect(whole, DONE)
    length_s = time.monotonic() - whole.began
    compact = trial.command("ledger", "compact", trial.out, *largest)
    time.sleep(float(trial.rng.uniform(0, length_s)))
    compact.send(signal.SIGKILL)
    code = trial.expect(compact, DONE, -signal.SIGKILL)
    assert not trial.finish()
    return told(trial, code, struck=code != DONE)


@kind("clock jumps")
def clockjumps(trial: Trial) -> str:
    """The time of day jumps, by a minute or by ten years, in the driver and all workers: nothing may come of it."""
    moment = float(trial.rng.uniform(0, trial.reference.length_s))
    return TOLD[trial.expect(trial.run(prepare=partial(jump, moment, trial.one_of([*JUMPS_S]))), DONE)]


def told(trial: Trial, code: int, *, struck: bool) -> str:
    """What came of a fault, by the exit code of the command that it struck; if none was struck, nothing may have."""
    if not struck:
        trial.verify()
        raise MissedError
    return TOLD[code]


def _some_worker(trial: Trial, run: Command) -> int | None:
    """Kill a worker as soon as there is one; None if there is none any more."""
    while run.is_alive:
        workers = descendants(run.pid)
        if workers:
            victim = int(trial.one_of(workers))
            return victim if _kill(victim, signal.SIGKILL) else None
        time.sleep(0.005)
    return None


def _kill(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _misbehaving(trial: Trial, how: str, outcomes: set[str]) -> str:
    if not (trial.home / "limited").exists():
        trial.studied = written(trial.home / "misbehaving")
    trial.studied.tell(how, int(trial.rng.integers(1, _ALL_PASSES)))
    code = trial.expect(trial.run(), DONE, MISTAKE, ERROR_ROWS)
    struck = trial.studied.mend()
    assert struck or code == DONE
    retry = code == ERROR_ROWS or (code == DONE and bool(trial.cut_short()))
    if retry:
        _refuse_other_rows(trial, outcomes)
    elif struck and code == DONE:
        _refuse_nearer(trial)
    trial.finish(retry=retry)
    return told(trial, code, struck=struck)


def _refuse_nearer(trial: Trial) -> None:
    """A number that is not finite, in answer to a try of the judge to come nearer, is no success and no error.

    The distance is then the upper bound that the other tries gave; everything else is as ever. The run is made anew.
    """
    rows = Ledger.open(trial.out).outcomes().to_pylist()
    expected = {_name(row): row for row in trial.reference.content["outcomes"]}
    unlike = [(row, expected[_name(row)]) for row in rows if unequal(row, expected[_name(row)])]
    for row, other in unlike:
        assert all(name.startswith("near_") and row[name] >= other[name] for name in unequal(row, other)), (row, other)
    if unlike:
        assert len({row["cell"] for row, _ in unlike}) == 1
        shutil.rmtree(trial.out)


def unequal(row: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The columns that both have, and in which they differ."""
    return [name for name in row.keys() & other.keys() if row[name] != other[name]]


def _refuse_other_rows(trial: Trial, outcomes: set[str]) -> None:
    """Whatever went wrong is in the rows of one cell, or of those that take over its points; others are as ever.

    A sample of that cell which was broken before counts as broken, with what was kept by then.
    """
    rows = Ledger.open(trial.out).outcomes().to_pylist()
    expected = {_name(row): row for row in trial.reference.content["outcomes"]}
    wrong = [row for row in rows if row["outcome"] in ("error", "timeout")]
    own = {row["cell"] for row in wrong if "nothing to transfer" not in row["message"]} | set(trial.cut_short())
    assert len(own) == 1, f"{len(own)} cells: {sorted({row['message'] for row in wrong})}"
    assert {row["outcome"] for row in wrong if row["cell"] in own} <= outcomes, wrong[0]
    crafted = any("keep=strongest" in row["arm"] for row in rows if row["cell"] in own)
    for row in rows:
        if row["outcome"] in ("error", "timeout") or (crafted and row["family"] == "transfer"):
            continue
        if row["cell"] in own:
            assert row["outcome"] in ("success", expected[_name(row)]["outcome"]), row
            continue
        found = {name: value for name, value in row.items() if name not in INCIDENTAL}
        assert found == expected[_name(row)], f"{found} and {expected[_name(row)]}"


def _name(row: dict[str, object]) -> tuple[object, ...]:
    return row["cell"], row["sample"]


def _damage_a_file(trial: Trial) -> None:
    files = sorted((trial.out / "ledger" / "segments").glob("*/*")) + sorted((trial.out / "inputs").rglob("*.npz"))
    path: Path = trial.one_of(files)
    content = spoiled_bytes(trial, path.read_bytes())
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


def spoiled_bytes(trial: Trial, whole: bytes) -> bytes | None:
    """What is left of a file after some damage; None where it is lost."""
    content = bytearray(whole)
    place = int(trial.rng.integers(len(content))) if content else 0
    match trial.one_of(["flip", "flip", "zero", "cut", "grow", "lose"]):
        case "flip":
            content[place] ^= 1 << int(trial.rng.integers(8))
        case "zero":
            content[place : place + 64] = bytes(b ^ 0xFF for b in content[place : place + 64])
        case "cut":
            del content[place:]
        case "grow":
            content += trial.rng.bytes(int(trial.rng.integers(1, 100)))
        case "lose":
            return None
    return bytes(content)


def _limit_files(limit: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@contextmanager
def _small_disk(place: Path) -> Iterator[Callable[[int], None]]:
    """A disk in memory, whose size can be set."""

    def resize(size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)

    place.mkdir()
    subprocess.run([*_MOUNT, str(place)], check=True)
    try:
        yield resize
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def jump(moment_s: float, by_s: float) -> None:
    """Set the clock of this process, and of those it forks, some seconds from now; `time.monotonic` never jumps."""
    true_time, jumps_at = time.time, time.monotonic() + moment_s

    def now_s() -> float:
        return true_time() + (by_s if time.monotonic() > jumps_at else 0)

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Jumping":
            return cls.fromtimestamp(now_s(), tz)

    time.time = now_s
    for name in [name for name in sys.modules if name.startswith("advrisk.")]:
        module = importlib.import_module(name)
        if getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Jumping  # type: ignore[attr-defined]
