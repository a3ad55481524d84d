"""What a notebook shows of everything a run answers: each question with its headline, or why there is none."""

from typing import ClassVar
from xml.etree import ElementTree

from advrisk.assess.protocol import Finding
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Headline, Unanswered
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.report.notebook import terminal_text
from advrisk.study import assessments
from tests.findings import findings_of

HOSTILE = "<script>alert(1)</script>"


def shown(**more: object) -> dict[str, str]:
    """Question -> answer."""
    page = ElementTree.fromstring(findings_of(damage=Unanswered("no arm is an attack"), **more)._repr_html_())  # type: ignore[arg-type]
    cells = [cell.text or "" for cell in page.iter("td")]
    return dict(zip(cells[::2], cells[1::2], strict=True))


def test_every_question_stands_there_asked_or_not() -> None:
    answers = shown()
    assert answers.keys() >= assessments.built_in.keys()
    assert answers["detection"] == "not asked"


def test_a_question_without_an_answer_says_why() -> None:
    further = {"leak": Unanswered("no model leaks", "add one")}
    answers = shown(detection=Unanswered(f"{HOSTILE} scored nothing"), answers=further)
    assert answers["detection"] == f"no answer: {HOSTILE} scored nothing"
    assert answers["leak"] == "no answer: no model leaks; add one"


def test_an_answer_is_its_headline() -> None:
    leak = Finding("leak", "Leaks", None, (Headline(f"{HOSTILE} leaks least."),))
    silent = Finding("silent", "Says nothing", None, ())
    answers = shown(answers={"leak": leak, "silent": silent})
    assert answers["leak"] == f"{HOSTILE} leaks least."
    assert answers["silent"] == "answered"


def test_print_shows_what_a_terminal_shows() -> None:
    found = findings_of(damage=Unanswered("no arm is an attack"))
    text = str(found)
    assert text == terminal_text(found)
    assert " question " in text
    assert "no answer: no arm is an attack" in text
    assert "<td" not in text


def test_print_of_rows_is_a_table_below_the_name_of_the_result() -> None:
    class Rows(Tabular):
        columns: ClassVar[Columns] = {"model": "text", "share": "number"}

        def rows(self) -> list[Row]:
            return [{"model": HOSTILE, "share": 0.25}]

    name, head, *_, row = [line for line in str(Rows()).splitlines() if line.strip()]
    assert (name, head.split(), row.split()) == ("Rows", ["model", "share"], [HOSTILE, "0.25"])


def test_an_estimate_stays_a_number_with_its_interval() -> None:
    assert str(Estimate(0.5, 0.25, 0.75, 0.95, 7, "exact")) == "0.500 [0.250, 0.750]"
