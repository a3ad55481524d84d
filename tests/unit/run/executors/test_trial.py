"""Models are loaded in a process of their own first: what ends or hangs that is an error with the model's name."""

import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from advrisk.core.errors import AdvriskError
from advrisk.parts import REGISTRIES
from advrisk.parts.data import Dataset
from advrisk.run.executors import local
from advrisk.run.executors.local import READY, TrialLoad
from advrisk.run.executors.trial import TrialProcess
from advrisk.run.executors.worker import load_on_trial
from advrisk.study import StudySpec, load_study, study_from

NETS = """
import ctypes, os, sys, time
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(4, 2))

class Exiting(Net):
    def forward(self, x):
        sys.exit(0)

def exits():
    sys.exit(4)

def ends():
    os._exit(0)

def crashes():
    ctypes.string_at(0)

def hangs():
    time.sleep(600)

def interrupts():
    raise KeyboardInterrupt

def fails():
    raise KeyError("no such layer")
"""
DATA = Dataset("toy", np.zeros((2, 1, 2, 2), np.float32), np.array([0, 1]), 2)
Loads = Callable[..., None]


def study(*factories: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": "toy",
        "data": {"source": "digits", "evaluate": 2},
        "models": {factory.partition(":")[2]: {"source": "torch", "factory": factory} for factory in factories},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
        **settings,
    }


def trial_of(spec: StudySpec) -> TrialProcess:
    return TrialProcess(spec, REGISTRIES)


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loads]:
    """Load models of a module beside the study on trial."""
    (tmp_path / "nets_on_trial.py").write_text(NETS)
    monkeypatch.syspath_prepend(str(tmp_path))
    trials: list[TrialProcess] = []

    def load(*names: str, **settings: Any) -> None:
        file = tmp_path / "study.yaml"
        file.write_text(
            yaml.safe_dump(study(*(f"nets_on_trial:{name}" for name in names), **settings), sort_keys=False)
        )
        trials.append(trial_of(load_study(file)))
        trials[-1].load(DATA, "cpu")
        assert trials[-1].worker is not None
        assert trials[-1].worker.process.poll() is None, "it waits for cells"

    yield load
    for trial in trials:
        trial.end()
        assert trial.worker is None or trial.worker.process.poll() is not None
    assert "nets_on_trial" not in sys.modules, "nothing was loaded here"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("ends", r"the process that loaded it died \(exit code 0\)"),
        ("crashes", r"the process that loaded it died \(signal SIGSEGV\)"),
    ],
)
def test_a_model_that_ends_or_crashes_its_process_is_named(loads: Loads, name: str, complaint: str) -> None:
    with pytest.raises(AdvriskError, match=rf"study\.yaml:\d+: models\.{name}: .*{complaint}"):
        loads("Net", name)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("exits", r"code of exits called sys\.exit\(4\) \(nets_on_trial\.py, line 14\)"),
        ("Exiting", r"code of Exiting called sys\.exit\(0\) \(nets_on_trial\.py, line 11\)"),
        ("interrupts", r"code of interrupts raised KeyboardInterrupt"),
        ("fails", r"failed with args {}: KeyError: 'no such layer'"),
    ],
)
def test_what_goes_wrong_on_trial_is_sent_as_an_error(
    name: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the process of a trial does it, in this one."""
    (tmp_path / "nets_here.py").write_text(NETS.replace("nets_on_trial", "nets_here"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    before, sent, alarms = signal.signal(signal.SIGINT, signal.SIG_IGN), list[Any](), list[int]()
    monkeypatch.setattr(signal, "alarm", alarms.append)
    connection: Any = SimpleNamespace(send=sent.append)
    spec = study_from(study("nets_here:Net", f"nets_here:{name}"))
    try:
        load_on_trial(TrialLoad(spec, ("Net", name), "cpu", DATA, (str(tmp_path),), ()), connection)
    finally:
        signal.signal(signal.SIGINT, before)
    *begun, error, ready = sent
    assert (begun, ready) == ([("Net",), (name,)], READY), "models after a faulty one are tried, too"
    assert isinstance(error, AdvriskError)
    assert re.search(complaint.replace("nets_on_trial", "nets_here"), str(error))
    assert alarms == [310, 0, 310, 0], "a process whose parent is gone ends all the same"


def test_a_model_that_hangs_is_stopped_in_time(loads: Loads) -> None:
    began = time.monotonic()
    with pytest.raises(AdvriskError, match=r"models\.hangs: was not loaded and asked once within 0\.5 s.*`max_load_s`"):
        loads("hangs", max_load_s=0.5)
    assert time.monotonic() - began < 60


def test_a_model_may_be_called_as_the_last_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's answers are told apart by their type."""
    sent: list[object] = [(READY,), READY]
    fake: Any = type("Fake", (), {"send": lambda *_: None, "poll": lambda *_: True, "recv": lambda _: sent.pop(0)})()
    monkeypatch.setattr(local, "spawn_worker", lambda: type("Worker", (), {"connection": fake})())
    trial_of(study_from(study(f"nets_on_trial:{READY}"))).load(DATA, "cpu")
    assert sent == []


@pytest.mark.parametrize(
    "model",
    [
        {"source": "demo", "name": "plain"},
        {"source": "torch", "factory": "advrisk.parts.models.small:SmallCnn"},
        {"source": "torch-export", "path": "net.pt2"},
        {"source": "object"},
        {"source": "torch", "factory": "__main__:Net"},
        {"source": "no-such-source"},
    ],
)
def test_models_without_code_of_the_user_or_that_are_only_here_start_no_process(
    model: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "spawn_worker", lambda: pytest.fail("a process was started"))
    trial = trial_of(study_from(study() | {"models": {"net": model}}))
    trial.load(DATA, "cpu")
    trial.end()


def test_a_source_that_the_parent_alone_has_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = study_from(study() | {"models": {"net": {"source": "made-in-a-notebook"}}})
    sent: list[Any] = []
    connection: Any = SimpleNamespace(send=sent.append)
    load_on_trial(TrialLoad(spec, ("net",), "cpu", DATA, (), ("a_module_that_is_nowhere",)), connection)
    assert sent == [READY]
