"""What the terminal shows: whole, and readable where it is narrow."""

from dataclasses import fields

import pytest

from advrisk.api.parts import describe_parts
from advrisk.cli.tables import arm_table, dry_run_sections, model_table, print_parts
from advrisk.core.flags import BLACK_BOX, FLAGS, SHARES
from advrisk.core.values import value_text
from advrisk.engine import Trust
from advrisk.render.terminal import print_sections
from advrisk.run.dry import DryRun


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


def test_arms_and_models_are_tables_with_units() -> None:
    row = {"arm": "pgd", "model": "plain", "share": 1 / 3, "kind": "attack", "origin": "study", "n": 24, "errors": 0}
    table = arm_table([row | {"passes": 836.79}, row | {"share": None, "passes": None}])
    texts = [[value_text(*pair) for pair in zip(one, table.columns, strict=True)] for one in table.rows]
    assert texts[0] == ["pgd", "plain", "33.3 %", "attack", "study", "24", "0", "837"]
    assert [texts[1][2], texts[1][-1]] == ["–", "–"]
    about = {"model": "noisy", "digest": "cb24", "capability": "gradients", "n_classes": 10, "random": False}
    about |= {"input_shape": [1, 28, 28], "train_s": 30.0771, "train_samples": 9, "tags": '{"sigma": 0.5}'}
    table = model_table([about | {"train_process_s": None, "train_cost": None}])
    assert "train_cost" not in [column.name for column in table.columns], "nobody knows it"
    shown = dict(zip([column.name for column in table.columns], table.rows[0], strict=True))
    assert shown == about | {"input_shape": "[1, 28, 28]"}


def test_a_plan_says_what_it_costs_and_what_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    plan = DryRun(
        n_cells=56,
        n_skipped=2,
        n_rows=2800,
        n_forward=90_400,
        n_backward=54_000,
        seconds=12,
        workers=2,
        by_arm={"clean": 400, "pgd-linf": 39_600},
        by_model={},
        uncounted=["art-l2"],
        lessons=("lid to plain",),
        by_measure={"clever": (3000, 2000)},
        look_levels={"decided": 0.992},
        looks=(32, 1048),
    )
    print_sections(dry_run_sections(plan))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    shown = " ".join(" ".join(lines).split())
    for text in (
        "56 cells to run (2 done already), 2800 rows, at most 90.4k forward and 54.0k backward passes.",
        "About 12 s with 2 workers",
        "It stops once `decided` at 99.2 % is known: it looks after 32, 1,048 samples.",
        "clever takes 3.0k forward and 2.0k backward passes",
        "detectors must learn, which is not in these numbers: lid to plain.",
        "clean 400 pgd-linf 39,600 art-l2 not known",
        "The passes of 1 arm are not known before they run",
    ):
        assert text in shown
