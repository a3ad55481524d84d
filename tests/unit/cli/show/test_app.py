"""`advrisk show`: what its first word may be, and what is said of others."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from advrisk.cli import main
from advrisk.cli.show.app import FindingGroup, show_app, summary

Advrisk = Callable[..., tuple[int, str]]
FINDINGS: Any = get_command(show_app)


@pytest.fixture
def advrisk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Advrisk:
    """Run a command; its exit code and what it says on standard error."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["advrisk", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), " ".join(capsys.readouterr().err.split())

    return run


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("survivl run", "no finding called 'survivl'; did you mean survival?"),
        ("survivl run --json", "no finding called 'survivl'; did you mean survival?"),
        ("run detection", "name the finding first: advrisk show detection run"),
        ("runs/x detection --details", "name the finding first: advrisk show detection runs/x --details"),
        ("--json detection run", "name the finding first: advrisk show detection --json run"),
        ("run --csv rows.csv damage", "name the finding first: advrisk show damage run --csv rows.csv"),
        ("runs/x detectoin", "did you mean detection? Name it first: advrisk show detection runs/x"),
        ("one two", "no finding called 'one'; findings are summary, damage, "),
        (
            "run --evasion 0.1",
            "--evasion is an option of damage and convergence, not of the summary: advrisk show damage",
        ),
        ("run --measure=seconds", "--measure is an option of survival, not of the summary"),
        ("run --nonsense", "No such option: --nonsense"),
        ("nowhere", "nowhere: holds no ledger"),
        ("nowhere --model damage", "nowhere: holds no ledger"),
        ("damage nowhere", "nowhere: holds no ledger"),
        ("damage", "Missing argument 'RUN'"),
        ("--json", "Missing argument 'RUN'"),
    ],
)
def test_mistakes_end_with_2_and_the_right_spelling(advrisk: Advrisk, line: str, complaint: str) -> None:
    code, said = advrisk("show", *line.split())
    assert (code, complaint in said) == (2, True), said


@pytest.mark.parametrize("finding", sorted(FINDINGS.known_commands()))
def test_each_finding_takes_a_run_and_few_options(finding: str, advrisk: Advrisk) -> None:
    command = FINDINGS.known_commands()[finding]
    options = [one for one in command.params if one.param_type_name == "option"]
    assert [one.name for one in command.params if one.param_type_name == "argument"] == ["folder"]
    assert len(options) <= 21, "two of them are those of every command"
    assert "--json" in {one.opts[0] for one in options}
    code, said = advrisk("show", finding, "run", "--no-such-option")
    assert (code, "No such option: --no-such-option" in said) == (2, True)


def test_options_are_of_the_finding_alone() -> None:
    owners = {
        option: {
            name for name, one in FINDINGS.known_commands().items() if any(option in param.opts for param in one.params)
        }
        for option in ("--measure", "--group", "--alpha", "--what-if", "--cost", "--where", "--csv")
    }
    assert owners == {
        "--measure": {"survival"},
        "--group": {"detection"},
        "--alpha": {"certificate"},
        "--what-if": {"indicators"},
        "--cost": {"damage"},
        "--where": set(FINDINGS.known_commands()) - {"search", "certificate", "models"},
        "--csv": set(FINDINGS.known_commands()) - {"summary", "arms", "models"},
    }


def test_a_finding_that_is_added_at_run_time_is_shown_listed_and_suggested() -> None:
    added = typer.Typer()

    @added.command()
    def fairness(folder: str) -> None:
        """Show who bears the risk."""
        typer.echo(f"fairness of {folder}")

    class Extended(FindingGroup):
        def known_commands(self) -> Mapping[str, Any]:
            return {**super().known_commands(), "fairness": get_command(added)}

    app = typer.Typer(cls=Extended, rich_markup_mode=None)
    app.command()(summary)
    app.callback()(lambda: None)
    runner = CliRunner()
    assert runner.invoke(app, ["fairness", "run"]).stdout == "fairness of run\n"
    assert "Show who bears the risk." in runner.invoke(app, ["--help"]).stdout
    assert "did you mean fairness?" in str(runner.invoke(app, ["fairnes", "run"]).exception)
    assert "advrisk show fairness run" in str(runner.invoke(app, ["run", "fairness"]).exception)
