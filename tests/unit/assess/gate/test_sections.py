"""What is shown of a gate, at any width; names from outside steer no terminal."""

import io

import pytest
from rich.console import Console

from advrisk.assess.gate import GateResult, RequirementResult
from advrisk.assess.gate.cases import measured_text
from advrisk.assess.gate.sections import sections
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Table, headline_of, summary_of
from advrisk.render.notebook import sections_html
from advrisk.render.terminal import print_sections

NASTY = "a|b <b>bold</b> [red]x[/red] \x1b[31m"


def estimate(value: float, method: str = "made up") -> Estimate:
    return Estimate(value, max(value - 0.1, 0), value + 0.1, 0.95, 100, method)


def gate() -> GateResult:
    results = (
        RequirementResult(
            "damage.a <= 0.5", "pass", "study", estimate(0.2), 0.5, "all of it", cautions=("a better one may",)
        ),
        RequirementResult(
            "damage.c <= 0.6", "pass", "study", estimate(0.25), 0.6, "all of it", cautions=("a better one may",)
        ),
        RequirementResult("damage.b <= 0.5", "fail", "given", estimate(0.8), 0.5, "none of it"),
        RequirementResult(
            f'damage."{NASTY}" <= 0.5', "undecided", "given", None, 0.5, "no verdict", "about 7 more samples", 7
        ),
    )
    return GateResult("signs", results, ("a note",))


def terminal(width: int, *, details: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(gate()), console, details=details)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [50, 120])
def test_every_verdict_and_what_would_settle_it_fit_the_terminal(width: int) -> None:
    lines = terminal(width)
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    assert shown.startswith("Gate of signs: fail (2 pass, 1 fail, 1 undecided)")
    assert "20.0 % [10.0, 30.0]" in shown
    assert "damage.b <= 0.5: none of it." in shown
    assert "<= 0.5: no verdict; about 7 more samples." in shown
    assert "Beside what passes (2 times): a better one may." in shown
    assert "Requirements: 2 of the study, 2 given in addition." in shown
    assert "[red]x[/red]" in shown
    assert "\x1b" not in "".join(lines)


def test_why_one_passes_is_said_to_those_who_look_closer() -> None:
    assert not any("all of it" in line for line in terminal(120))
    assert any("all of it" in line for line in terminal(120, details=True))


def test_a_notebook_shows_what_is_open_and_takes_no_name_for_html() -> None:
    shown = sections_html(list(sections(gate())))
    assert "about 7 more samples" in shown
    assert "&lt;b&gt;bold" in shown
    assert "<b>" not in shown


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "–"),
        (estimate(1, "certificate"), "yes"),
        (estimate(0, "certificate"), "no"),
        (estimate(12345, "count"), "12,345"),
        (estimate(0.123456), "0.1235 [0.02346, 0.2235]"),
    ],
)
def test_a_value_is_told_as_what_it_is(found: Estimate | None, text: str) -> None:
    assert measured_text(found) == text


def test_the_executive_summary_hears_of_some_undecided_requirements() -> None:
    def result(n: int) -> GateResult:
        return GateResult(
            "g", tuple(RequirementResult(f"r{k}", "undecided", "study", None, 1, "why", "do this") for k in range(n))
        )

    assert summary_of(list(sections(result(1))), "undecided") == ["Required, r0: why; do this."]
    assert summary_of(list(sections(result(6))), "undecided")[4:] == ["2 more requirements are undecided."]
    assert summary_of(list(sections(GateResult("g", gate().results[:3]))), "undecided") == []


def test_a_verdict_that_passes_stands_out() -> None:
    shown = list(sections(gate()))
    assert headline_of(shown) == "Gate of signs: fail (2 pass, 1 fail, 1 undecided)"
    (table,) = [one for one in shown if isinstance(one, Table)]
    assert [row[1].mark for row in table.rows] == ["best", "best", "", ""]  # type: ignore[union-attr]
