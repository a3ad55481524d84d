"""Names and messages that would steer a terminal are written out, whatever verb prints them and wherever to."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text

from advrisk.cli import complain, main
from advrisk.core.names import visible, visible_line
from advrisk.ledger import Ledger, table_from
from advrisk.render.terminal import Terminal

CLEAR, BELL, C1, RETURN, TURNED, HIDDEN = "\x1b[2J", "\x07", "\x9b31m", "\r", "\u202egnp.exe", "\u200b"
EVIL = f"m{CLEAR}{BELL}{C1}{RETURN}{TURNED}{HIDDEN}\nadvrisk: certified\x00"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
N = 20


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose model, arm and samples have such names."""
    samples = [f"s{n}{EVIL}" for n in range(N)]
    folder = tmp_path / "run"
    tables = {
        "samples": {"sample": samples, "label": [0] * N, "split": ["evaluate"] * N, "weight": [1.0] * N},
        "models": {"model": [EVIL], "digest": ["d"]},
        "arms": {
            "model": [EVIL], "arm": [EVIL], "recipe": ["r"], "origin": ["import"], "kind": ["attack"],
            "norm": ["linf"], "repeats": [1],
        },
        "cells": {
            "cell": ["c"], "recipe": ["r"], "model": [EVIL], "arm": [EVIL], "repeat": [0], "n_samples": [N],
            "n_errors": [1], "flags": [["masked-gradients"]],
        },
        "outcomes": {
            "cell": ["c"] * N, "model": [EVIL] * N, "arm": [EVIL] * N, "sample": samples, "kind": ["attack"] * N,
            "repeat": [0] * N, "outcome": ["success"] * (N - 1) + ["error"], "d_linf": [0.1] * N,
            "message": [None] * (N - 1) + [EVIL],
        },
    }  # fmt: skip
    ledger = Ledger.open(folder, create=True)
    ledger.append({name: table_from(name, columns) for name, columns in tables.items()})
    return folder


Call = Callable[..., tuple[str, str, object]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """A command as users give it: what it prints, and its exit code."""

    def called(*words: object) -> tuple[str, str, object]:
        monkeypatch.setattr(sys, "argv", ["advrisk", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capfd.readouterr()
        return shown.out, shown.err, ended.value.code

    return called


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["show"],
        ["show", "attacks"],
        ["show", "damage", "--details"],
        ["show", "failures"],
        ["select", "--details"],
        ["gate", "--require", f"damage.{EVIL} <= 0.2"],
        ["gate", "--require", "robust_accuracy@linf:0.1.x >= 0"],
        ["show", "damage", "--model", EVIL],
        ["show", "damage", "--model", f"{EVIL}e"],
        ["show", "damage", "--arm", f"no{EVIL}"],
        ["compare", EVIL],
        ["ledger", "check"],
        ["ledger", "sql", "SELECT model, arm, sample FROM outcomes LIMIT 2"],
        ["ledger", "sql", f"SELECT '{CLEAR}{TURNED}' FROM nowhere"],
    ],
    ids=lambda words: " ".join(words)[:30].replace(EVIL[:5], ""),
)
def test_whatever_a_verb_prints_of_a_foreign_run_steers_nothing(call: Call, run: Path, words: list[str]) -> None:
    at = 2 if words[0] in ("show", "ledger") and len(words) > 1 else 1
    out, errors, code = call(*words[:at], run, *words[at:])
    assert "Traceback" not in errors
    assert code in (0, 1, 2, 4)
    assert not STEERING.findall(out + errors)
    assert not [line for line in (out + errors).splitlines() if line.startswith("advrisk: certified")]
    if words[0] in ("status", "show") and code == 0:
        assert r"m\u001b[2J\u0007\u009b31m\r\u202egnp.exe" in out


def test_an_unknown_option_and_a_missing_run_of_such_names_steer_nothing(call: Call) -> None:
    for words in (["status", f"/nowhere/{EVIL}".replace("\x00", "")], ["status", f"--{CLEAR}"], [EVIL], ["list", EVIL]):
        out, errors, code = call(*words)
        assert code == 2
        assert not STEERING.findall(out + errors)
        assert r"\u001b[2J" in errors or r"\x1b[2J" in errors


def test_json_stays_json_and_says_the_same(call: Call, run: Path) -> None:
    out, _, _ = call("ledger", "sql", run, "SELECT DISTINCT model FROM outcomes", "--json")
    assert not STEERING.findall(out)
    assert json.loads(out) == [{"model": EVIL}]


def test_letters_of_all_scripts_and_emoji_stay() -> None:
    text = "Zoë 王 مرحبا שלום 👩\u200d🚀 नमस्ते\ta\nb\u00a0c"
    assert visible(text) == text
    assert visible_line("a\tb\nc") == r"a\tb\nc"
    assert visible("\ud800\U000e0041\x7f") == r"\ud800\udb40\udc41\u007f"
    assert visible(visible(EVIL)) == visible(EVIL)


def test_a_message_of_several_lines_cannot_pass_for_another(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"model {EVIL}")
    first, second, last = capsys.readouterr().err.split("\n")
    assert first.startswith(r"advrisk: model m\u001b[2J")
    assert (second, last) == (r"  advrisk: certified\u0000", "")


def test_the_console_writes_out_what_steers_and_keeps_its_own_codes() -> None:
    console = Terminal()
    console.file, console._color_system, console._force_terminal = io.StringIO(), console._color_system, True
    console.print(Text(EVIL, style="bold"))
    console.print(f"[red]{EVIL}[/red]")
    said = console.file.getvalue()
    assert CLEAR not in said
    assert TURNED not in said
    assert "[red]" in said


def test_every_console_of_the_program_is_that_one() -> None:
    source = Path(sys.modules["advrisk"].__path__[0])
    made = [path.name for path in source.rglob("*.py") if re.search(r"(?<!\w)Console\(", path.read_text())]
    assert made == [], "only `Terminal` writes out what steers"
