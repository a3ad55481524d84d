"""How far a run is, as a terminal and a notebook show it."""

import io
from typing import Any

from rich.console import Console

from advrisk.assess.status import Status
from advrisk.assess.status_sections import arm_table, model_table, status_sections
from advrisk.core.values import value_text
from advrisk.render.terminal import print_sections

EVIL = "[red]<b>\x1b[31m"


def terminal(state: Status, flagged: list[dict[str, Any]], width: int = 60) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_sections(status_sections(state, flagged, "runs/signs"), console)
    lines: list[str] = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    return lines


def test_flags_are_listed_the_worst_first_and_not_without_end() -> None:
    rows = [_flagged("zero-gradients", f"pgd-{n}", n_flagged=n, share=0.2) for n in range(1, 12)]
    rows.append(_flagged("random-model", "fgsm", n_flagged=12, share=None))
    lines = terminal(_status(flags={"zero-gradients": 66, "random-model": 12}), rows)
    arms = [line.split(":")[0] for line in lines if line.startswith("· plain, ")]
    assert arms == [f"· plain, pgd-{n}" for n in range(11, 3, -1)] + ["· plain, fgsm"]
    shown = " ".join(" ".join(lines).split())
    wide = " ".join(" ".join(terminal(_status(flags={"zero-gradients": 66}), rows[:11], width=200)).split())
    assert "zero-gradients 66 flagged cells, 11 attack-model pairs gradients were zero in" in wide
    assert "plain, pgd-11: 11 of 12 cells, in which 20 % of the gradients were zero · plain, pgd-10: 10" in shown
    assert "and 3 more arms: advrisk status runs/signs --json lists all" in shown
    assert shown.endswith("plain, fgsm: 12 of 12 cells")


def test_outcomes_refusals_and_errors_are_counted() -> None:
    state = _status(
        outcomes={"success": 1234, "error": 2},
        messages={f"no {EVIL}": 2},
        clean_accuracy={"plain": 0.75},
        clean_rejection={"plain": 0.125},
        elsewhere={"success": 3},
        n_imported=5,
    )
    shown = " ".join(" ".join(terminal(state, [])).split())
    for text in (
        "signs: 1 model, 12 arms, 9 samples",
        "12 of 12 cells done: complete",
        "1,000,000 passes",
        "5 rows imported",
        "which no other assessment counts: success 3",
        "success 1,234 error 2",
        "plain 75.0 % 12.5 %",
        "2 × no [red]<b>",
        "advrisk run … --out runs/signs --retry-errors",
    ):
        assert text in shown
    assert "\x1b" not in shown


def test_a_run_that_is_not_finished_says_how_to_resume() -> None:
    shown = " ".join(terminal(_status(n_cells=3), []))
    assert "3 of 12 cells done: run the same command again to resume" in shown


def test_a_notebook_shows_flags_by_their_meaning_and_takes_nothing_for_html() -> None:
    html = _status(flags={"zero-gradients": 66}, messages={EVIL: 2})._repr_html_()
    assert "66 flagged cells" in html
    assert "gradients were zero in every feature" in html
    assert "<b>" not in html


def _flagged(flag: str, arm: str, *, n_flagged: int, share: float | None) -> dict[str, object]:
    return {"flag": flag, "model": "plain", "arm": arm, "n_flagged": n_flagged, "n_cells": 12, "share": share}


def _status(**changes: Any) -> Status:
    held = {"n_cells": 12, "outcomes": {}, "flags": {}, "messages": {}, "n_passes": 1_000_000, "n_imported": 0}
    return Status("signs", 1, 0, 12, 9, n_cells_expected=12, **held | changes)


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
