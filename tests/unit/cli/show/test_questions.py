"""The commands of built-in questions: what each offers is what Python takes, and each option has a help."""

import inspect
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import advrisk.api
from advrisk.api import Run
from advrisk.cli.app import app
from advrisk.cli.options import OF_OUTPUT
from advrisk.cli.show.questions import GATE, Command, question_commands
from advrisk.study import AssessmentTraits, assessments
from advrisk.study.assess import SearchesSpec
from advrisk.study.registered import BUILT_IN

ROOT: Any = get_command(app)
COMMANDS = {**question_commands(), GATE: ROOT.commands[GATE]}
# Those without a method of their own are asked with `Run.assess`, which takes every field.
METHODS = {name: getattr(Run, name) for name in BUILT_IN if hasattr(Run, name)} | {"search": Run.searches}
# Options that no question is asked with: of the answer, of a detector, of a scenario's own pictures.
OF_PRINTING = {"folder", "help", *OF_OUTPUT, "quiet", "verbose", "junit", "markdown", "group", "out"}
OF_ALARM = {"threshold", "false_alarms"}


def offered(name: str) -> dict[str, Any]:
    """The options of a question by the argument that each becomes, without those of printing."""
    return {one.name: one for one in COMMANDS[name].params if one.name not in OF_PRINTING}


@pytest.mark.parametrize("name", METHODS)
def test_what_the_command_offers_is_an_argument_in_python_with_the_same_default(name: str) -> None:
    taken = inspect.signature(METHODS[name]).parameters
    options = offered(name)
    if "detector" in options or name == "detection":  # with which they are one argument
        options = {option: one for option, one in options.items() if option not in OF_ALARM}
    assert options.keys() <= taken.keys()
    for option, one in options.items():
        assert one.default == taken[option].default, option


@pytest.mark.parametrize("name", METHODS)
def test_python_knows_every_field_of_the_spec_that_is_described(name: str) -> None:
    taken = inspect.signature(METHODS[name]).parameters
    described = {field for field, one in BUILT_IN[name].accepts.model_fields.items() if one.description}
    assert described <= taken.keys()


@pytest.mark.parametrize("name", question_commands())
def test_every_option_has_a_help_and_every_command_a_line_and_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert all(one.help for one in command.params), [one.name for one in command.params if not one.help]
    assert command.help.startswith(BUILT_IN[name].help)
    assert f"Example: advrisk show {name} runs/signs" in command.help


def test_every_question_has_a_command() -> None:
    assert [*question_commands()][:9] == [
        *("damage", "convergence", "attacks", "detection", "indicators", "failures", "survival", "search"),
        "certificate",
    ]
    assert set(COMMANDS) == set(assessments.built_in)


class Asked:
    """Stands in for a run: remembers what it was asked."""

    asked: dict[str, Any]

    def __init__(self, folder: str) -> None:
        Asked.asked = {"folder": folder}

    def part(self, **given: Any) -> "Asked":
        Asked.asked |= {name: value for name, value in given.items() if value is not None}
        return self

    @property
    def context(self) -> "Asked":
        return self

    def result(self, name: str, **given: Any) -> Any:
        Asked.asked |= {"name": name} | given
        raise typer.Exit(0)

    def __getattr__(self, method: str) -> Any:
        def answer(**given: Any) -> Any:
            Asked.asked |= {"name": method} | given
            raise typer.Exit(0)

        return answer


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("detection r --detector a --detector b --tpr 9/10", {"detectors": ["a", "b"], "tpr": 0.9, "threshold": None}),
        ("detection r --false-alarms 0.1 --where class=3", {"threshold": {"false_alarms": 0.1}, "where": ["class=3"]}),
        ("detection r --group linf-0.1 --threshold 2 --arm x*", {"threshold": 2.0, "arms": ["x*"]}),
        (
            "failures r --model a --samples 3 --loss bill",
            {"model": "a", "loss": "bill", "scenario": None, "samples": 3},
        ),
        ("survival r --hardware gpu=2.5 --model a", {"hardware": {"name": "gpu", "per_hour": 2.5}, "models": ["a"]}),
        ("search r --model a", {"models": ["a"]}),
        ("certificate r --alpha 10% --zeta 0.05", {"alpha": 0.1, "zeta": 0.05}),
        ("certificate r --alpha 1/10 --method betting", {"alpha": 0.1, "method": "betting"}),
        ("attacks r --norm l2 --model a", {"norm": "l2", "models": ["a"]}),
        ("convergence r --eps 8/255 --detector d --threshold 2", {"thresholds": [8 / 255]}),
    ],
)
def test_options_reach_the_question(monkeypatch: pytest.MonkeyPatch, line: str, asked: dict[str, Any]) -> None:
    monkeypatch.setattr(advrisk.api, "Run", type("Run", (), {"open": Asked}))
    name, *words = line.split()
    done = CliRunner().invoke(app, ["show", name, *words])
    assert done.exit_code == 0, done.output
    assert Asked.asked | asked | {"name": name} == Asked.asked
    assert Asked.asked["folder"] == "r"


def test_a_question_without_words_of_its_own_has_the_options_of_its_spec() -> None:
    made = Command().made("leak", AssessmentTraits("Leaks", SearchesSpec))
    assert made.help == "Leaks.\n\nExample: advrisk show leak runs/signs"
    own = [one.opts[0] for one in made.params]
    assert own == ["folder", "--model", "--where", "--details", "--csv", "--json", "--quiet", "--verbose"]
