"""The Tab key, as a shell asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advrisk.cli import main
from advrisk.cli.completion import run_folders


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("runs/signs", "runs/town", "demo", ".hidden"):
        (tmp_path / folder / "ledger" / "segments").mkdir(parents=True)
    (tmp_path / "empty" / "ledger").mkdir(parents=True)
    (tmp_path / "study.yaml").touch()
    monkeypatch.chdir(tmp_path)


def offered(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash is offered for the last word of a line."""
    monkeypatch.setenv("_ADVRISK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    monkeypatch.setattr(sys, "argv", ["advrisk"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("advrisk st", ["status"]),
        ("advrisk show su", ["summary", "survival"]),
        ("advrisk show de", ["detection", "demo"]),
        ("advrisk show ru", ["runs/signs", "runs/town"]),
        ("advrisk show survival ", ["demo", "runs/signs", "runs/town"]),
        ("advrisk show survival runs/s", ["runs/signs"]),
        ("advrisk show survival demo --mea", ["--measure"]),
        ("advrisk show survival demo --measure g", ["gradient"]),
        ("advrisk show demo --wh", ["--where"]),
        ("advrisk status d", ["demo"]),
        ("advrisk compare demo runs/t", ["runs/town"]),
        ("advrisk ledger diff demo runs/t", ["runs/town"]),
        ("advrisk run st", []),  # a file: left to the shell
    ],
)
def test_verbs_findings_runs_and_options_are_offered(
    line: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(line, capsys, monkeypatch) == words


def test_every_verb_is_offered_in_the_order_of_the_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered("advrisk ", capsys, monkeypatch)[:3] == ["demo", "init", "list"]
    assert "show" in offered("advrisk ", capsys, monkeypatch)


def test_a_real_process_answers_without_heavy_imports() -> None:
    asked = {"_ADVRISK_COMPLETE": "complete_bash", "COMP_WORDS": "advrisk show damage ", "COMP_CWORD": "3"}
    words = [sys.executable, "-X", "importtime", "-m", "advrisk"]
    done = subprocess.run(words, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["demo", "runs/signs", "runs/town"]
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"torch", "numpy", "scipy", "duckdb", "pyarrow"}


def test_the_script_for_a_shell_names_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "advrisk", "--show-completion", "zsh"],
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_ADVRISK_COMPLETE=complete_zsh advrisk" in done.stdout


def test_runs_are_found_by_whole_paths_and_one_folder_below(tmp_path: Path) -> None:
    assert run_folders(f"{tmp_path}/ru") == [f"{tmp_path}/runs/signs", f"{tmp_path}/runs/town"]
    assert run_folders("") == ["demo", "runs/signs", "runs/town"]
    assert run_folders("empty") == []
    assert run_folders("nowhere/x") == []
    assert run_folders("s3://bucket/runs") == []
