"""What a notebook shows of each answer: its headline in words, and a short table with intervals."""

from advrisk.assess import built_in as _registered  # noqa: F401
from advrisk.assess.compare.records import RunComparison
from advrisk.assess.compare.sections import sections as comparison_sections
from advrisk.assess.context import assessment_named
from advrisk.assess.protocol import Finding, finding_of
from advrisk.assess.status import Status
from advrisk.assess.status_sections import status_sections
from advrisk.core.notebook import html_block, html_table, notebook_html
from advrisk.core.sections import Unanswered, without_twins
from advrisk.render.notebook import sections_html
from advrisk.report.findings import Findings
from advrisk.report.records import headlines
from advrisk.study import assessments

for _name in assessments.built_in:
    if (_kind := assessment_named(_name).kind) is not None:
        notebook_html.register(_kind)(lambda found, name=_name: sections_html(finding_of(name, found).sections))


@notebook_html.register
def _(found: RunComparison) -> str:
    return sections_html(without_twins(comparison_sections(found)))


@notebook_html.register
def _(found: Status) -> str:
    return sections_html(list(status_sections(found)))


@notebook_html.register
def _(found: Findings) -> str:
    first, *others = headlines(found) or ["This run answers no question yet"]
    asked = {name: found.answers.get(name) for name in {**assessments.built_in, **found.answers}}
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
