"""The list of parts: whole, and readable where the terminal is narrow."""

from dataclasses import fields

import pytest

from advrisk.api.parts import describe_parts
from advrisk.cli.parts import print_parts
from advrisk.core.flags import BLACK_BOX, FLAGS, SHARES
from advrisk.engine import Trust


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_the_list_of_parts_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    described = describe_parts()
    print_parts(described)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert [line for line in lines if not line.startswith("  ")] == list(described), "only the kinds are not indented"
    names = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert {part["name"] for parts in described.values() for part in parts} <= set(names)


def test_a_fact_that_is_broken_into_lines_goes_on_further_in(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts({"attacks": [_part(summary="a word " * 20)]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("    a word")
    assert lines[3].startswith("      ")
    assert " ".join(" ".join(lines[2:5]).split()) == ("a word " * 20).strip()


def test_a_part_without_a_docstring_leaves_no_empty_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts({"attacks": [_part(summary="")]})
    assert all(capsys.readouterr().out.splitlines())


def test_the_list_of_parts_shows_limits_and_whole_summaries(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts(describe_parts("attacks") | describe_parts("objectives"))
    shown = " ".join(capsys.readouterr().out.split())
    assert "steps: int = 40, at least 1 step_size: float | None = None, more than 0" in shown
    assert "candidates: int | Literal['all'] = 10, at least 1" in shown
    assert "with z sorted downwards: −(z_y − max of the others) / (z_1 − z_3)" in shown


def test_what_an_attack_needs_is_said() -> None:
    facts = {part["name"]: part["facts"] for part in describe_parts("attacks")["attacks"]}
    assert facts["spatial"] == ["needs labels; no norm, no eps; keep: strongest", "for images only"]
    assert facts["transfer"][0] == "needs labels; of the surrogate, what the arm needs"
    assert facts["pixel"] == [
        "needs scores; norms l0; keep: smallest",
        "looks for the smallest perturbation; eps is not needed",
    ]


def test_every_share_in_the_ledger_is_said_of_something() -> None:
    assert {field.name.replace("_", "-") for field in fields(Trust)} == SHARES.keys() - {BLACK_BOX}
    assert SHARES.keys() <= FLAGS.keys()


def _part(**changes: object) -> dict[str, object]:
    return {"name": "mine", "summary": "", "use_when": "tests", "facts": [], "parameters": []} | changes
