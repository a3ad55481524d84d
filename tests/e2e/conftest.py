"""A small real study: digits, two trained nets, a few arms. Commands run as a user runs them.

Every process imports torch for seconds. So commands and cells run in this process, unless the processes
themselves are what is tested: then ask for the fixtures `advrisk_process` and `in_workers`, or for two workers.
"""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk import train
from advrisk.cli import main
from advrisk.run import campaign
from advrisk.run.dispatch import Executor
from advrisk.run.executors.local import InProcess, RunCell
from advrisk.run.options import Options

from .visits import CHROMIUM, FLAGS

Command = Callable[..., "subprocess.CompletedProcess[str]"]
IN_WORKERS = campaign.choose_executor

RECIPE = {
    "name": "digits-nets",
    "seed": 3,
    "data": {"source": "digits"},
    "models": {
        name: {
            "factory": "advrisk.parts.models.small:SmallCnn",
            "args": {"size": 8, "width": 8},
            "method": method,
            "epochs": 12,
            "learning_rate": 0.02,
            **settings,
        }
        for name, method, settings in (("plain", "plain", {}), ("noisy", "gaussian-noise", {"sigma": 0.3}))
    },
}


@pytest.fixture(autouse=True, scope="module")
def cells_here() -> Iterator[None]:
    """Cells run in this process, where a study is not run with two or more workers."""

    def here(run_cell: RunCell, bench: Any, plan: Any, options: Options, trial: Any) -> Executor:
        if (options.workers or 1) > 1:
            return IN_WORKERS(run_cell, bench, plan, options, trial)
        return InProcess(run_cell, bench)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "choose_executor", here)
        yield


@pytest.fixture
def in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in worker processes, as they are for users."""
    monkeypatch.setattr(campaign, "choose_executor", IN_WORKERS)


@pytest.fixture(scope="session")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two nets trained on digits by `advrisk.train`."""
    folder = tmp_path_factory.mktemp("nets")
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(RECIPE))
    train(recipe, folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def study(nets: Path) -> dict[str, Any]:
    return study_of(nets)


def study_of(nets: Path) -> dict[str, Any]:
    """A study of those nets, as nested dicts: 2 models, 7 arms, 64 samples in shards of 16."""
    return {
        "name": "digits-study",
        "seed": 5,
        "data": {"source": "digits", "evaluate": 64},
        "models": {
            name: {
                "source": "torch",
                "factory": "advrisk.parts.models.small:SmallCnn",
                "args": {"size": 8, "width": 8},
                "weights": str(nets / f"{name}.safetensors"),
            }
            for name in ("plain", "noisy")
        },
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.2]},
            {"attack": "pgd", "norm": ["linf", "l2"], "eps": 0.2, "steps": 10},
            {"corruption": "gaussian-noise", "sigma": 0.3, "repeats": 2},
        ],
        "shard": 16,
        "assess": {"damage": {"norm": "linf", "thresholds": [0.1, 0.2], "resamples": 200}},
    }


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    """Write a study to a file and return its path."""

    def write(content: dict[str, Any], name: str = "study.yaml") -> Path:
        path = tmp_path / name
        path.write_text(yaml.safe_dump(content))
        return path

    return write


@pytest.fixture
def advrisk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line in this process, in a fresh folder."""

    def call(*words: str | Path, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        command, out, err = ["advrisk", *map(str, words)], io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, chdir(tmp_path), redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", command)
            for name, value in ({"COLUMNS": "160"} | (env or {})).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        return subprocess.CompletedProcess(command, int(str(ended.value.code)), out.getvalue(), err.getvalue())

    return call


@pytest.fixture
def advrisk_process(tmp_path: Path) -> Command:
    """Run the command line in a process of its own, in a fresh folder."""

    def call(*words: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "advrisk", *map(str, words)]
        environment = os.environ | {"COLUMNS": "160"} | options.pop("env", {})
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment, check=False, **options
        )

    return call
