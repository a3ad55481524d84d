"""What is shown of two runs: a headline that names what decides, and every number, old and new."""

import io

import pytest
from rich.console import Console

from advrisk.assess.compare import Compared, RunComparison
from advrisk.assess.compare.sections import comparison_headline, sections
from advrisk.core.estimate import Estimate
from advrisk.render.terminal import print_sections


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 0.1, value + 0.1, 0.95, 100, "made up")


def row(model: str, quantity: str, verdict: str, worse_by: float | None, *, p: float | None = None) -> Compared:
    known = (None,) * 3 if worse_by is None else (estimate(0.8), estimate(0.8 - worse_by), estimate(worse_by))
    return Compared(model, model, quantity, *known, 0.02, verdict, "why", p)  # type: ignore[arg-type]


def compared(*rows: Compared, improved: tuple[Compared, ...] = ()) -> RunComparison:
    return RunComparison("old", "new", 0.02, 0.95, 1, {}, rows, ("a note",), improved=improved)


def shown(*rows: Compared, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(compared(*rows)), console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return " ".join(text.split())


def test_a_comparison_names_what_decides_it() -> None:
    def said(*rows: Compared, improved: tuple[Compared, ...] = ()) -> str:
        return comparison_headline(compared(*rows, improved=improved))

    clean, robust = row("a", "clean accuracy", "fail", 0.1), row("a", "robust accuracy at 8/255", "pass", -0.1)
    assert said(clean, robust) == "worse by more than 2 % in clean accuracy"
    assert said(clean, row("b", "clean accuracy", "pass", 0)) == "worse by more than 2 % in a: clean accuracy"
    assert said(robust, improved=(robust,)).startswith("better in robust accuracy at 8/255, and in nothing worse")
    assert said(clean, robust, improved=(robust,)) == (
        "worse by more than 2 % in clean accuracy; better in robust accuracy at 8/255"
    )
    open_ = row("a", "clean accuracy", "undecided", 0.01)
    assert said(open_, robust, improved=(robust,)) == (
        "undecided whether it is worse by more than 2 % in clean accuracy; better in robust accuracy at 8/255"
    )
    lost = row("a", "attacks of the old run", "undecided", None)
    assert said(lost, row("a", "damage", "undecided", 0.0)) == (
        "undecided whether it is worse by more than 2 % in damage and attacks of the old run (not compared)"
    )


@pytest.mark.parametrize("width", [60, 100])
def test_old_and_new_stand_beside_each_other_at_any_width(width: int) -> None:
    text = shown(row("a", "clean accuracy", "fail", 0.1, p=0.9), row("a", "damage", "undecided", None), width=width)
    assert text.startswith("new against old: worse by more than 2 % in clean accuracy Every number of a, old and new:")
    for part in ("0.8", "[0.7, 0.9]", "[0.6, 0.8]", "0.1 [0", "p 0.9000", "worse", "a note", "a: damage: why."):
        assert part in text
    assert "Paired on 1 sample; margin 2 %, level 95 %." in text


def test_of_several_pairs_each_number_names_its_models() -> None:
    text = shown(row("a", "damage", "pass", 0.0), row("b", "damage", "pass", 0.0))
    assert "Every number, old and new:" in text
    assert "a: damage" in text
    assert "b: damage" in text
