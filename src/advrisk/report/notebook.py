"""What a notebook shows of each answer: its headline in words, and a short table with intervals."""

from advrisk.assess.built_in import COMPARISON, QUESTIONS
from advrisk.assess.protocol import Finding
from advrisk.core.notebook import html_block, html_table, notebook_html
from advrisk.core.sections import Unanswered
from advrisk.render.notebook import sections_html
from advrisk.report.findings import Findings
from advrisk.report.records import headlines

for _question in (*QUESTIONS.values(), COMPARISON):
    notebook_html.register(_question.result)(lambda found, shown=_question.of_one: sections_html(list(shown(found))))


@notebook_html.register
def _(found: Findings) -> str:
    first, *others = headlines(found) or ["This run answers no question yet"]
    asked = {name: found.answers.get(name) for name in {**QUESTIONS, **found.answers}}
    answers = {name: _answer(one) for name, one in asked.items()}
    notes = [sentence for sentence in others if sentence not in answers.values()]
    return html_block(first, html_table(["question", "answer"], list(answers.items())), notes=notes)


def _answer(found: Finding | Unanswered | None) -> str:
    """Its headline, or why there is none."""
    if isinstance(found, Finding):
        return found.headline or "answered"
    return "not asked" if found is None else f"no answer: {found}"


@notebook_html.register
def _(found: Finding) -> str:
    return sections_html(found.sections)
