"""What the terminal shows: whole, and readable where it is narrow."""

from dataclasses import fields
from pathlib import Path

import pytest

from advrisk.api.parts import describe_parts
from advrisk.api.status import Status
from advrisk.cli.tables import print_parts, print_rows, print_status
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


def test_flags_are_listed_the_worst_first_and_not_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [_flagged("zero-gradients", f"pgd-{n}", n_flagged=n, share=0.2) for n in range(1, 12)]
    rows.append(_flagged("random-model", "fgsm", n_flagged=12, share=None))
    print_status(_status({"zero-gradients": 66, "random-model": 12}), rows, Path("runs/signs"))
    lines = capsys.readouterr().out.splitlines()
    arms = [line.split(":")[0].strip() for line in lines if line.startswith("  plain, ")]
    assert arms == [f"plain, pgd-{n}" for n in range(11, 3, -1)] + ["plain, fgsm"]
    shown = " ".join(" ".join(lines).split())
    assert "zero-gradients, 66 flagged cells, 11 attack-model pairs: gradients were zero in every feature" in shown
    assert "plain, pgd-11: 11 of 12 cells, in which 20 % of the gradients were zero plain, pgd-10: 10" in shown
    assert "and 3 more arms: advrisk status runs/signs --json lists all" in shown
    assert shown.endswith("plain, fgsm: 12 of 12 cells")
    assert max(map(len, lines)) <= 60


def test_every_share_in_the_ledger_is_said_of_something() -> None:
    assert {field.name.replace("_", "-") for field in fields(Trust)} == SHARES.keys() - {BLACK_BOX}
    assert SHARES.keys() <= FLAGS.keys()


def _flagged(flag: str, arm: str, *, n_flagged: int, share: float | None) -> dict[str, object]:
    return {"flag": flag, "model": "plain", "arm": arm, "n_flagged": n_flagged, "n_cells": 12, "share": share}


def _status(flags: dict[str, int]) -> Status:
    return Status("signs", 1, 0, 12, 9, 12, 12, outcomes={}, flags=flags, messages={}, n_passes=9, n_imported=0)


def _part(**changes: object) -> dict[str, object]:
    return {"name": "mine", "summary": "", "use_when": "tests", "facts": [], "parameters": []} | changes


def test_rows_too_wide_for_the_terminal_are_blocks_without_folded_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"model": "noisy", "digest": "cb242282197ca0c368f6b79a71aa8fef", "capability": "gradients", "cost": None}
    row |= {"input_shape": [1, 28, 28], "train_s": 30.0771, "tags": '{"defence": "gauss-out", "sigma": 0.5}'}
    monkeypatch.setenv("COLUMNS", "80")
    print_rows([row, row])
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert lines[0] == "noisy"
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "digest cb242282197ca0c368f6b79a71aa8fef; capability gradients; input_shape [1, 28, 28]; train_s" in text
    monkeypatch.setenv("COLUMNS", "200")
    print_rows([row, row])
    wide = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in wide if "noisy" in line] == [["noisy", row["digest"]]] * 2
