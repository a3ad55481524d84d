"""`advrisk -h`: verbs in sections, each with a line that fits 80 columns."""

from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from advrisk.cli.app import Verbs, app

ROOT: Any = get_command(app)
LISTED = [f"{title}:" for title in Verbs.sections]


def paths() -> list[tuple[str, ...]]:
    """Every command and group as the words that lead to it."""
    groups = {name: one for name, one in ROOT.commands.items() if hasattr(one, "commands")}
    nested = [(name, inner) for name, group in groups.items() for inner in group.list_commands(None)]
    return [(), *((name,) for name in ROOT.commands), *nested]


def helped(*words: str) -> str:
    """What a command prints in a terminal of 80 columns."""
    done = CliRunner().invoke(app, list(words), prog_name="advrisk", terminal_width=80)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_verbs_stand_in_sections_the_first_ones_first() -> None:
    lines = helped("-h").splitlines()
    assert [line for line in lines if line in LISTED] == LISTED, "and no other section"
    assert "Commands:" not in lines, "each verb has a section"
    verbs = [line.split()[0] for line in lines[lines.index("Start:") :] if line.startswith("  ")]
    assert verbs[:2] == ["demo", "init"]
    assert lines[lines.index("Run:") + 1].split()[0] == "run"
    assert sorted(verbs) == sorted(ROOT.commands)


@pytest.mark.parametrize("words", [(), ("show",), ("ledger",)])
def test_each_line_of_a_list_is_whole_and_fits(words: tuple[str, ...]) -> None:
    lines = helped(*words, "-h").splitlines()
    assert max(map(len, lines)) <= 80
    group: Any = ROOT
    for word in words:
        group = group.commands[word]
    for name in group.list_commands(None):
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.endswith((".", "?")), line
        assert not line.endswith("..."), line


@pytest.mark.parametrize("words", paths(), ids=" ".join)
def test_h_is_help(words: tuple[str, ...]) -> None:
    assert helped(*words, "-h") == helped(*words, "--help")
    assert "-h, --help" in helped(*words, "-h")
