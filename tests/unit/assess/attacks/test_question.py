"""What is shown of attacks, in words and as a table at any width."""

import io

import pytest
from rich.console import Console

from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.attacks.question import sections, spare_words
from advrisk.assess.damage.distances import Distances
from advrisk.core.flags import FLAGS
from advrisk.render.terminal import print_sections
from advrisk.risk.envelope import ArmOptimality


def compared(*rows: ArmOptimality, spare: tuple[str, ...] = (), **more: object) -> ArmComparison:
    names = tuple(row.name for row in rows)
    distances = Distances("linf", names, ("1",), 2, {}, n_unfinished=0, n_without_verdict=1)
    facts = {"other_norms": (), "n_passes": None, "n_passes_spare": None} | more
    return ArmComparison(distances, {"m": rows}, rows, rows, spare, **facts)


def arm(name: str, optimality: float | None, nearest: int) -> ArmOptimality:
    return ArmOptimality(name, 0.5, None, optimality, nearest, only=0, lost=None)


def test_arms_that_could_be_dropped_are_named_with_what_that_saves() -> None:
    rows = arm("pgd", 1.0, 3), arm("fgsm", 0.5, 1), arm("deepfool-l2", 0.1, 0)
    told = spare_words(
        compared(*rows, spare=("fgsm", "deepfool-l2"), other_norms=("l2",), n_passes=4000, n_passes_spare=1000)
    )
    assert told[0] == (
        "2 of 3 arms could be dropped together without changing any sample's smallest linf distance, "
        "which saves 1,000 of 4,000 passes (25 %): fgsm, deepfool-l2."
    )
    assert "Some of those were made for l2: compare them in that norm, too." in told
    assert any("no verdict: 1 sample" in sentence for sentence in told)


def test_passes_that_nobody_counted_are_not_saved() -> None:
    told = spare_words(compared(arm("pgd", 1.0, 3), arm("fgsm", 0.5, 1), spare=("fgsm",)))
    assert told[0].endswith("smallest linf distance: fgsm.")


def test_it_is_said_that_every_arm_is_needed_or_that_nothing_is_known() -> None:
    assert spare_words(compared(arm("pgd", 1.0, 3)))[0].startswith("No arm could be dropped")
    assert spare_words(compared(arm("pgd", None, 3)))[0].startswith("Every success lies at the same distance")
    assert spare_words(compared(arm("pgd", None, 0)))[0].startswith("No sample was broken by attack")


def terminal(width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(both()), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 120])
def test_the_comparison_of_arms_fits_the_terminal_and_loses_nothing(width: int) -> None:
    lines = terminal(width).splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    for text in ("0.900", "12.5 %", "75.0 %", "1,234", "still-gaining", "could be dropped", "0.250", "50.0 %"):
        assert text in shown
    assert "1 of 2 arms could be dropped together without changing any sample's smallest linf distance" in shown
    assert f"still-gaining: {FLAGS['still-gaining']}" in shown


def test_the_models_stand_apart_for_those_who_look_closer() -> None:
    assert "optimality, hard" not in terminal(120)
    assert "optimality, hard" in terminal(120, details=True)


def both() -> ArmComparison:
    pgd = ArmOptimality("pgd", 0.75, 1234.0, 0.9, 40, 30, 0.125, ("still-gaining",))
    fgsm = ArmOptimality("fgsm", 0.5, None, 0.25, 3, 0, 0.0)
    unknown = tuple(ArmOptimality(name, 0.0, None, None, 0, 0, None) for name in ("pgd", "fgsm"))
    return ArmComparison(
        distances=Distances("linf", ("fgsm", "pgd"), ("1", "2"), 2, {}, n_unfinished=0, n_without_verdict=0),
        by_model={"plain": (pgd, fgsm), "hard": unknown},
        overall=(pgd, fgsm),
        families=(pgd, fgsm),
        spare=("fgsm",),
        other_norms=(),
        n_passes=5000,
        n_passes_spare=1000,
    )
