"""`advrisk show RUN`: the summary of a run."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.api import Run
from advrisk.api.reporting import form_text
from advrisk.assess.protocol import Finding
from advrisk.cli.summary import print_summary, show_summary
from advrisk.core.errors import RiskError
from advrisk.core.sections import Unanswered
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.ledger.views import ALL
from tests.findings import findings_of

WHOLE: dict[str, list[str]] = {"--model": [], "--where": []}
PART = {"--model": ["a"], "--where": []}
ROWS = ("model,sample,distance", "a,1,0.1", "a,2,0.2", "a,3,0.3", "a,4,", "b,1,0", "b,2,0.4", "b,3,0.5", "b,4,inf")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "theirs.csv").write_text("\n".join(ROWS) + "\n")
    import_outcomes(tmp_path / "theirs.csv", tmp_path / "run", norm="linf")
    return Run.open(tmp_path / "run")


def unanswered(**given: Any) -> Any:
    """Findings of a run without attacks."""
    return findings_of(**{"damage": Unanswered("there is no attack")} | given)


def test_headlines_table_and_commands(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    show_summary(run, "my run", WHOLE, as_json=False)
    said = capsys.readouterr().out
    assert " ".join(said.split()).startswith(run.select().headline)
    assert "relative damage" in said
    lines = said[said.index("Read on:") :].splitlines()
    assert "  advrisk show convergence 'my run'  # how the numbers settle" in lines
    assert "  advrisk report 'my run'            # everything, in one HTML file" in lines
    assert "show survival" not in said, "the run does not answer it"


def test_commands_are_never_wrapped(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show_summary(run, "run", WHOLE, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[lines.index("  advrisk show attacks run") - 1] == "  # which attacks earn their passes"


def test_json_is_that_of_the_report(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    show_summary(run, "run", WHOLE, as_json=True)
    told, reported = json.loads(capsys.readouterr().out), json.loads(form_text(run, "json"))
    assert {**told, "made_at": ""} == {**reported, "made_at": ""}


def test_a_part_says_so(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    show_summary(run.part(models=["a"]), "run", PART, as_json=False)
    said = capsys.readouterr().out
    assert "Only a: 1 of 2 models." in said
    assert "  advrisk show attacks run --model a" in said, "and so do the commands"
    show_summary(run.part(models=["a"]), "run", PART, as_json=True)
    assert json.loads(capsys.readouterr().out)["filter"]["models"] == ["a"]


def test_nothing_answered_is_an_error_that_says_why() -> None:
    run: Any = SimpleNamespace(findings=unanswered)
    with pytest.raises(RiskError, match="there is no attack"):
        show_summary(run, "run", WHOLE, as_json=False)


def test_a_question_without_an_answer_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    run: Any = SimpleNamespace(view=ALL)
    print_summary(
        run, unanswered(survival=Unanswered("too few attempts"), certificate=Unanswered("not begun")), "run", WHOLE
    )
    said = capsys.readouterr().out
    assert "· No answer on survival: too few attempts" in said
    assert "· No answer on certificate: not begun" in said
    assert said.count("there is no attack") == 1, "the headline says so already"


def test_commands_take_the_options_that_they_have(capsys: pytest.CaptureFixture[str]) -> None:
    part = {"--model": ["a", "b"], "--where": ["class=3"]}
    found = unanswered(answers={name: Finding(name, name, None, ()) for name in ("attacks", "failures", "search")})
    print_summary(SimpleNamespace(view=ALL), found, "run", part)  # type: ignore[arg-type]
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "advrisk show attacks run --model a --model b --where class=3" in lines
    assert "advrisk show failures run --where class=3" in lines
    assert "advrisk show search run --model a --model b" in lines
