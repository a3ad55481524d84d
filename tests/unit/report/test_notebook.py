"""What a notebook shows of everything a run answers: each question with its headline, or why there is none."""

from xml.etree import ElementTree

from advrisk.assess.protocol import Finding
from advrisk.core.sections import Headline, Unanswered
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
