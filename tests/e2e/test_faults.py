"""What goes wrong becomes rows or a clear message; the ledger stays valid and the run can go on."""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk import Run, Study
from advrisk.core.containment import MOST_LINES
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked
from advrisk.testing.ledgers import outcome_rows

Study_ = dict[str, Any]

BAD_PARTS = '''
"""Attacks that misbehave, and a net that registers them by being imported."""
import os, time
import torch
from advrisk.core.traits import AttackTraits
from advrisk.parts.attacks.registry import attacks
from advrisk.parts.models.small import SmallCnn

def net():
    return SmallCnn(size=8, width=8)

def bad(name):
    passes = lambda _: (2, 1)
    traits = AttackTraits(needs="gradients", norms=("linf",), objective="ace", passes=passes, use_when="testing")
    return attacks.register(name, traits=traits)

@bad("raises-midway")
def raises_midway(probe):
    probe.forward(probe.x0, probe.active())
    raise ZeroDivisionError("midway")

@bad("proposes-nan")
def proposes_nan(probe):
    probe.forward(probe.x0 * float("nan"), probe.active())

@bad("leaves-space")
def leaves_space(probe):
    probe.forward(probe.x0 + 2, probe.active())

@bad("leaves-eps")
def leaves_eps(probe):
    probe.forward((probe.x0 + 0.5).clamp(0, 1), probe.active())

@bad("exits")
def exits(probe):
    raise SystemExit(0)

@bad("interrupts")
def interrupts(probe):
    raise KeyboardInterrupt

@bad("kills-its-process")
def kills_its_process(probe):
    os._exit(9)

@bad("sleeps-between-passes")
def sleeps_between_passes(probe):
    while len(rows := probe.active()):
        probe.forward(probe.x0[rows], rows)
        time.sleep(0.3)

@bad("hangs-in-a-pass")
def hangs_in_a_pass(probe):
    time.sleep(600)
'''


@pytest.fixture
def bad_study(study: Study_, tmp_path: Path) -> Study_:
    """The digits study with a module of misbehaving attacks beside it; evaluated on 32 samples."""
    (tmp_path / "bad_parts.py").write_text(BAD_PARTS)
    study["data"]["evaluate"] = 32
    study["models"] = {"plain": study["models"]["plain"] | {"factory": "bad_parts:net", "args": {}}}
    return study


def test_bad_attacks_give_error_rows_and_the_rest_goes_on(
    bad_study: Study_,
    tmp_path: Path,
    write_study: Callable[..., Path],
    advrisk: Callable[..., Any],
    advrisk_process: Callable[..., Any],
) -> None:
    names = ["raises-midway", "proposes-nan", "leaves-space", "leaves-eps", "exits", "interrupts", "kills-its-process"]
    bad_study["shard"] = 32
    bad_study["arms"] = [
        {"attack": names, "norm": "linf", "eps": 0.1},
        {"attack": "fgsm", "norm": "linf", "eps": 0.1},
    ]
    done = advrisk_process("run", write_study(bad_study), "--out", "run", "--workers", "2")
    assert done.returncode == 3, done.stderr
    rows = Run.open(tmp_path / "run").outcomes().to_pylist()
    found = {name: {row["outcome"] for row in rows if row["family"] == name} for name in [*names, "fgsm", "clean"]}
    assert found.pop("fgsm") <= {"success", "resisted", "already_wrong"}
    assert found.pop("clean") <= {"success", "resisted"}
    assert found.pop("kills-its-process") == {"error"}  # the whole cell is lost with its process
    assert all(outcomes <= {"error", "already_wrong"} and "error" in outcomes for outcomes in found.values())
    messages = {row["family"]: row["message"] for row in rows if row["outcome"] == "error"}
    assert messages["raises-midway"] == "ZeroDivisionError: midway"
    assert "not finite" in messages["proposes-nan"]
    assert "left the space" in messages["leaves-space"]
    assert "left eps" in messages["leaves-eps"]
    assert messages["exits"].startswith("ModelError: code of plain called sys.exit(0) (bad_parts.py, line ")
    assert messages["interrupts"].startswith("ModelError: code of plain raised KeyboardInterrupt (bad_parts.py, line ")
    assert "exit code 9" in messages["kills-its-process"]
    assert len(rows) == 32 * 9, "a row is missing"
    status = json.loads(advrisk("status", "run", "--json").stdout)
    assert status["complete"]
    assert status["outcomes"]["error"] == sum(row["outcome"] == "error" for row in rows)


def test_a_crafting_attack_that_kills_its_process_is_not_tried_again_by_those_that_need_it(
    bad_study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk_process: Callable[..., Any]
) -> None:
    (tmp_path / "bad_parts.py").write_text(
        BAD_PARTS.replace("os._exit(9)", "open('tries', 'a').write('.'); os._exit(9)")
    )
    bad_study["models"]["again"] = bad_study["models"]["plain"]
    killer = {"attack": "kills-its-process", "norm": "linf", "eps": 0.1}
    bad_study["arms"] = [{"attack": "transfer", "from": "plain", "arm": killer}]
    done = advrisk_process("run", write_study(bad_study), "--out", "run", "--workers", "2")
    assert done.returncode == 3, done.stderr
    assert len((tmp_path / "tries").read_text()) == 2, "once for each of the two shards"
    rows = Run.open(tmp_path / "run").query("FROM outcomes WHERE family = 'transfer'").to_pylist()
    said = "kills-its-process-linf-0.1-ace,keep=strongest failed on plain, so there is nothing to transfer"
    assert {(row["outcome"], row["message"]) for row in rows} == {("error", said)}
    assert len(rows) == 2 * 32


def test_error_rows_are_tried_again_only_when_asked(
    bad_study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk_process: Callable[..., Any]
) -> None:
    bad_study["arms"] = [{"attack": ["raises-midway", "fgsm"], "norm": "linf", "eps": 0.1}]
    words = ["run", write_study(bad_study), "--out", "run", "--workers", "1"]
    assert advrisk_process(*words).returncode == 3
    mended = BAD_PARTS.replace('raise ZeroDivisionError("midway")', "return")
    (tmp_path / "bad_parts.py").write_text(mended)
    assert advrisk_process(*words).returncode == 3
    done = advrisk_process(*words, "--retry-errors")
    assert done.returncode == 0, done.stderr
    rows = outcome_rows(tmp_path / "run")
    assert len(rows) == 32 * 3
    assert not any(row["outcome"] == "error" for row in rows)


@pytest.mark.usefixtures("in_workers")
def test_a_cell_that_runs_out_of_time_gives_timeout_rows(bad_study: Study_, tmp_path: Path) -> None:
    bad_study |= {"max_cell_s": 0.5, "arms": [{"attack": "sleeps-between-passes", "norm": "linf", "eps": 0.1}]}
    sys.path.insert(0, str(tmp_path))
    try:
        run = Study.from_dict(bad_study).run(tmp_path / "run", workers=1)
    finally:
        sys.path.remove(str(tmp_path))
    outcomes = {row["outcome"] for row in run.outcomes().to_pylist() if row["kind"] == "attack"}
    assert outcomes <= {"timeout", "already_wrong"}
    assert "timeout" in outcomes


@pytest.mark.slow
@pytest.mark.usefixtures("in_workers")
def test_a_cell_that_hangs_inside_a_pass_is_stopped(bad_study: Study_, tmp_path: Path) -> None:
    bad_study |= {"max_cell_s": 1, "arms": [{"attack": ["hangs-in-a-pass", "fgsm"], "norm": "linf", "eps": 0.1}]}
    sys.path.insert(0, str(tmp_path))
    try:
        run = Study.from_dict(bad_study).run(tmp_path / "run", workers=1)
    finally:
        sys.path.remove(str(tmp_path))
    by_family: dict[str, set[str]] = {}
    for row in run.outcomes().to_pylist():
        by_family.setdefault(row["family"], set()).add(row["outcome"])
    assert by_family["hangs-in-a-pass"] == {"timeout"}
    assert "timeout" not in by_family["fgsm"]


def test_a_second_writer_is_refused(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk_process: Callable[..., Any]
) -> None:
    with locked(tmp_path / "run"):
        refused = advrisk_process("run", write_study(study), "--out", "run")
    assert refused.returncode == 2
    assert f"process {os.getpid()} on" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_full_disk_leaves_a_valid_ledger(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk_process: Callable[..., Any]
) -> None:
    study["keep_inputs"] = "none"
    file = write_study(study)

    def no_room() -> None:  # the system refuses files of more than 6 kB, as a full disk does
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    failed = advrisk_process("run", file, "--out", "run", "--workers", "1", preexec_fn=no_room)
    assert failed.returncode == 2, failed.stderr
    assert "could not be written" in failed.stderr
    assert "Traceback" not in failed.stderr
    Ledger.open(tmp_path / "run").outcomes()
    Study.load(file).run(tmp_path / "run")
    Study.from_dict(study).run(tmp_path / "with room")
    assert outcome_rows(tmp_path / "run") == outcome_rows(tmp_path / "with room")


def test_files_that_a_killed_worker_was_writing_are_removed_by_the_next_run(study: Study_, tmp_path: Path) -> None:
    study["data"]["evaluate"] = 16
    Study.from_dict(study).run(tmp_path / "run")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    half = tmp_path / "run" / "inputs" / "shards" / f".3f2a.npz.{dead.pid}"
    half.touch()
    Study.from_dict(study).run(tmp_path / "run")
    assert not half.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], number: signal.Signals
) -> None:
    study["data"]["evaluate"] = 400
    command = [sys.executable, "-m", "advrisk", "run", str(write_study(study)), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*command, "--publish-s", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a shell's background jobs ignore interrupts
    )
    segments = tmp_path / "run" / "ledger" / "segments"
    while process.poll() is None and (not segments.exists() or len(list(segments.glob("0*"))) < 3):
        time.sleep(0.01)
    process.send_signal(number)
    printed, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in message
    assert "Traceback" not in message
    state = Run.open(tmp_path / "run").status()
    assert 0 < state.n_cells < state.n_cells_expected
    facts = json.loads(printed)
    assert (facts["complete"], facts["stopped_by"]) == (False, "interrupt")
    assert facts["remaining"] == {"cells": state.n_cells_expected - state.n_cells}
    assert facts["resume"].split() == ["advrisk", *command[3:]]


def test_a_time_limit_ends_the_run_in_order_and_its_json_says_what_remains(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk: Callable[..., Any]
) -> None:
    words = ["run", write_study(study), "--out", "run", "--json"]
    done = advrisk(*words, "--max-minutes", "0")
    assert done.returncode == 4, done.stderr
    assert "time limit of 0s: 0 of 56 cells are done; 56 cells left" in done.stderr
    facts = json.loads(done.stdout)
    assert (facts["complete"], facts["stopped_by"], facts["remaining"]) == (False, "time", {"cells": 56})
    assert facts["status"]["n_cells_expected"] == 56
    spent = advrisk(*words, "--max-passes", "1")  # begins a cell in any case
    facts = json.loads(spent.stdout)
    assert (spent.returncode, facts["stopped_by"], facts["remaining"]) == (4, "passes", {"cells": 55}), spent.stderr
    rested = advrisk(*words, "--max-passes", "4500")  # one shard takes fewer, two take more
    facts = json.loads(rested.stdout)
    assert (rested.returncode, facts["stopped_by"], facts["complete"]) == (0, "passes", False), rested.stderr
    assert (facts["remaining"], facts["status"]["n_samples_run"]) == ({}, 16), "what was run is assessed"
    resumed = advrisk(*facts["resume"].split()[1:], "--json")  # without the limit
    assert resumed.returncode == 0, resumed.stderr
    facts = json.loads(resumed.stdout)
    assert (facts["complete"], facts["stopped_by"], facts["remaining"], facts["resume"]) == (True, None, {}, None)
    assert {row["model"] for row in facts["models"]} == {"plain", "noisy"}
    assert advrisk(*words, "--max-time", "2h").returncode == 0, "nothing is left, so no limit is reached"


def test_a_time_limit_that_leaves_inputs_without_scores_is_no_complete_run(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk: Callable[..., Any]
) -> None:
    study["data"]["evaluate"] = 16
    Study.from_dict(study).run(tmp_path / "run")
    study["detectors"] = ["confidence"]
    done = advrisk("run", write_study(study), "--out", "run", "--json", "--max-time", "0s")
    assert done.returncode == 4, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["complete"], facts["stopped_by"]) == (False, "time")
    assert facts["remaining"]["scores"] > 0
    assert {row["model"] for row in facts["models"]} == {"plain", "noisy"}, "all cells are done"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-time", "90"], "--max-time: a duration such as 90m, 2h, 1h30m or 45s is needed, found '90'; write 90m"),
        (["--max-time", "soon"], "--max-time: a duration such as"),
        (["--max-time", "2h", "--max-minutes", "5"], "--max-time 2h and --max-minutes 5 both limit the time; give one"),
    ],
)
def test_a_time_limit_that_cannot_be_read_is_refused(
    study: Study_, write_study: Callable[..., Path], advrisk: Callable[..., Any], words: list[str], message: str
) -> None:
    done = advrisk("run", write_study(study), "--out", "run", *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_run_without_damage_prints_json_all_the_same(
    study: Study_, write_study: Callable[..., Path], advrisk: Callable[..., Any]
) -> None:
    study["data"]["evaluate"] = 16
    study["arms"] = [{"corruption": "gaussian-noise", "sigma": 0.3}]
    done = advrisk("run", write_study(study), "--out", "run", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["complete"]
    assert facts["unanswered"] in done.stderr
    assert facts["headline"] == f"The evidence names no model: {facts['unanswered']}."
    assert (facts["ship"], facts["least_bad"], facts["decided"]) == (None, None, False)


def test_a_changed_sample_is_refused(study: Study_, tmp_path: Path) -> None:
    import numpy as np

    x = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    y = np.arange(40) % 10
    np.savez(tmp_path / "data.npz", x=x, y=y)
    study["data"] = {"source": "npz", "path": str(tmp_path / "data.npz"), "evaluate": 30}
    study["models"] = {name: model | {"expect_accuracy": 0} for name, model in study["models"].items()}  # noise as data
    Study.from_dict(study).run(tmp_path / "run")
    x[:, 0, 0] ^= 1
    np.savez(tmp_path / "data.npz", x=x, y=y)
    with pytest.raises(LedgerError, match="changed since this run began"):
        Study.from_dict(study).run(tmp_path / "run")


def test_workers_of_a_killed_driver_end_within_a_cell(bad_study: Study_, tmp_path: Path) -> None:
    """They hold the other end of a pipe: that nobody does any more shows that they have ended."""
    bad_study["arms"] = [{"attack": "hangs-in-a-pass", "norm": "linf", "eps": 0.1}]
    bad_study["shard"] = 16
    (tmp_path / "study.json").write_text(json.dumps(bad_study))
    begun, held = os.pipe()
    hang = f"def hangs_in_a_pass(probe):\n    os.write({held}, b'x')"
    module = (tmp_path / "bad_parts.py").read_text().replace("def hangs_in_a_pass(probe):", hang)
    (tmp_path / "bad_parts.py").write_text(module)
    code = (
        "import json, subprocess; from functools import partial; from advrisk import Study; "
        "from advrisk.run.executors import local; start = subprocess.Popen; "
        f"local.subprocess.Popen = lambda *a, pass_fds=(), **k: start(*a, pass_fds=[*pass_fds, {held}], **k); "
        "Study.from_dict(json.load(open('study.json'))).run('run', workers=2)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    driver = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, pass_fds=[held], env=environment, stderr=subprocess.DEVNULL
    )
    os.close(held)
    try:
        assert _read(begun, 120) + _read(begun, 120) == b"xx", "both workers are within a cell"
        driver.kill()
        driver.wait()
        assert _read(begun, 10) == b"", "a worker is still there"
    finally:
        driver.kill()
        driver.wait()
        os.close(begun)


def _read(handle: int, within_s: float) -> bytes | None:
    """A byte, nothing if nobody can write any more, None if neither came in time."""
    readable, _, _ = select.select([handle], [], [], within_s)
    return os.read(handle, 1) if readable else None


LOUD = '''
"""A net whose factory does what it should not: prints, moves elsewhere, writes to standard output itself."""
import atexit, os, sys
from advrisk.parts.models.small import SmallCnn

class Loud(SmallCnn):
    def forward(self, x):
        print("asked")
        os.write(1, b"past Python")
        os.chdir("/")
        return super().forward(x)

def net():
    atexit.register(print, "goodbye")
    return Loud(size=8, width=8)
'''


def test_the_output_of_a_command_is_its_own_whatever_code_of_a_model_prints(
    study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk_process: Callable[..., Any]
) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    study["models"] = {"plain": study["models"]["plain"] | {"factory": "loud:net", "args": {}}}
    study["data"]["evaluate"] = 16
    study["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": 0.1}]
    file = write_study(study)
    planned = advrisk_process("run", file, "--out", "run", "--dry-run", "--json")
    assert (planned.returncode, json.loads(planned.stdout)["n_cells"]) == (0, 2), planned.stderr
    done = advrisk_process("run", file, "--out", "run", "--json", "--workers", "1")
    assert (done.returncode, json.loads(done.stdout)["complete"]) == (0, True), done.stderr
    assert "goodbye" in done.stderr
    assert "past Python" in done.stderr
    assert "… further output of plain suppressed" in done.stderr
    assert done.stderr.count("asked\n") <= 3 * MOST_LINES, "on trial, in the worker that this becomes, and here"


@pytest.mark.parametrize("code", [0, 4])
def test_a_factory_that_calls_sys_exit_does_not_choose_the_exit_code(
    code: int, study: Study_, tmp_path: Path, write_study: Callable[..., Path], advrisk_process: Callable[..., Any]
) -> None:
    (tmp_path / "leaving.py").write_text(f"import sys\n\ndef net():\n    sys.exit({code})\n")
    study["models"] = {"plain": study["models"]["plain"] | {"factory": "leaving:net", "args": {}}}
    done = advrisk_process("run", write_study(study), "--out", "run")
    assert done.returncode == 2, done.stderr
    assert f"models.plain: code of plain called sys.exit({code}) (leaving.py, line 4)" in done.stderr
    assert not (tmp_path / "run").exists()
