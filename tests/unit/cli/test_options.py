"""Options that several commands share: each reaches the part of the run that a command is about."""

import inspect
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import advrisk.api
from advrisk.cli.options import OF_PART, AsJson, of_part

GIVEN = (
    *("--norm", "l2", "--arm", "pgd*", "--arm", "fgsm*", "--eps", "8/255", "--evasion", "curve.json", "--cost", "3"),
    *("--detector", "confidence", "--threshold", "0.4", "--answers", "sqlite:///a.db"),
    *("--model", "plain", "--where", "class=3"),
)
ASKED = {
    "norm": "l2",
    "arms": ["pgd*", "fgsm*"],
    "thresholds": [8 / 255],
    "evasion": "curve.json",
    "cost": 3.0,
    "detector": {"name": "confidence", "threshold": 0.4, "false_alarms": None},
    "answers": "sqlite:///a.db",
    "models": ["plain"],
    "where": ["class=3"],
}


class Opened:
    """Stands in for a run: remembers what part of it was asked for."""

    def __init__(self, folder: str) -> None:
        self.folder, self.asked = folder, dict[str, Any]()

    def part(self, **given: Any) -> "Opened":
        self.asked |= given
        return self


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call a command made of a function, and return what it was handed."""
    monkeypatch.setattr(advrisk.api, "Run", type("Run", (), {"open": Opened}))

    def call(*words: str) -> Any:
        handed: list[Any] = []

        @of_part
        def show(run: Opened, as_json: AsJson = False) -> None:
            handed.extend((run, as_json))

        app = typer.Typer()
        app.command()(show)
        done = CliRunner().invoke(app, list(words))
        return handed or done.output

    return call


def test_every_option_of_a_part_reaches_it(asked: Any) -> None:
    run, as_json = asked("runs/signs", *GIVEN, "--json")
    assert (run.folder, run.asked, as_json) == ("runs/signs", ASKED, True)


def test_what_is_not_given_is_the_studys(asked: Any) -> None:
    run, as_json = asked("runs/signs")
    assert set(run.asked.values()) == {None}
    assert as_json is False


def test_a_part_of_a_run_takes_every_option_as_an_argument() -> None:
    taken = inspect.signature(advrisk.api.Run.part).parameters
    assert OF_PART.keys() - {"threshold", "false_alarms"} == taken.keys() - {"self"}, "those two are of the detector"
    assert {one.default for name, one in taken.items() if name != "self"} == {None}
