"""What is shown of a dry run, where the terminal is narrow."""

import pytest

from advrisk.render.terminal import print_sections
from advrisk.run.dry import DryRun
from advrisk.run.dry_sections import dry_run_sections


def test_a_plan_says_what_it_costs_and_what_nobody_knows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
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
