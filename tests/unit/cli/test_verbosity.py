"""`--quiet` and `--verbose`: which every command has, and what they do."""

from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from advrisk.cli import app as cli
from advrisk.cli.verbosity import App, detail, is_quiet, is_verbose, note
from advrisk.core.errors import StudyError
from advrisk.render.terminal import Terminal

ROOT: Any = get_command(cli.app)


def commands(group: Any) -> list[Any]:
    known = group.known_commands() if hasattr(group, "known_commands") else group.commands
    return [leaf for one in known.values() for leaf in (commands(one) if hasattr(one, "commands") else [one])]


def test_every_command_has_both() -> None:
    every = commands(ROOT)
    assert len(every) > 30
    for one in every:
        offered = {option for parameter in one.params for option in parameter.opts}
        assert {"--quiet", "-q", "--verbose", "-v"} <= offered, one.name


app = App()


@app.command()
def speak(name: Annotated[str, typer.Argument()] = "me") -> None:
    note(f"note {is_quiet()} {is_verbose()} {Terminal.notes}")
    detail("detail")
    typer.echo(name)


@app.command()
def other() -> None:
    """A second one, or typer makes no group."""


@pytest.mark.parametrize(
    ("given", "stderr"),
    [([], "note False False True\n"), (["--quiet"], ""), (["-q"], ""), (["-v"], "note False True True\ndetail\n")],
)
def test_notes_and_details_are_printed_at_their_level(given: list[str], stderr: str) -> None:
    done = CliRunner().invoke(app, ["speak", "you", *given])
    assert done.exit_code == 0
    assert done.stdout == "you\n"
    assert done.stderr.startswith(stderr)
    assert ("finished in" in done.stderr) == ("-v" in given)
    assert not is_quiet()
    assert Terminal.notes


def test_one_of_the_two() -> None:
    with pytest.raises(StudyError, match="give one"):
        CliRunner().invoke(app, ["speak", "-q", "-v"], catch_exceptions=False)
