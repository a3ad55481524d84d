"""What a notebook shows of each result: its headline in words, and a short table with intervals."""

from collections.abc import Mapping, Sequence
from functools import singledispatch
from html import escape
from pathlib import Path
from typing import Any

from advrisk.assess.compare.records import RunComparison
from advrisk.assess.compare.sections import sections as comparison_sections
from advrisk.assess.context import assessment_named
from advrisk.assess.findings import Findings
from advrisk.assess.protocol import Finding, finding_of
from advrisk.assess.status import Status
from advrisk.assess.status_sections import status_sections
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import level_text
from advrisk.core.sections import Unanswered, without_twins
from advrisk.render.notebook import html_block, html_table, rows_html, sections_html
from advrisk.report.records import headlines
from advrisk.study import assessments


@singledispatch
def notebook_html(found: Any) -> str:
    """A result as HTML: its rows, unless a function is registered for its type."""
    return rows_html(found)


for _name in assessments.built_in:
    if (_kind := assessment_named(_name).kind) is not None:
        notebook_html.register(_kind)(lambda found, name=_name: sections_html(finding_of(name, found).sections))


@notebook_html.register
def _(found: Estimate) -> str:
    interval = f"{found} at {level_text(found.level)}"
    return html_table(["value", "samples", "method"], [[interval, str(found.n), found.method]])


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


def run_html(name: str, folder: Path, status: Status, models: Sequence[Mapping[str, Any]]) -> str:
    """How far a run is, and what to ask it."""
    asked = "damage() · detection() · indicators() · survival() · certificate() · figures() · report()"
    rows = [[row["model"], row["capability"], row["digest"]] for row in models]
    parts = (f"<p>{escape(str(folder))}</p>", notebook_html(status))
    return html_block(
        f"Run {name}", *parts, html_table(["model", "capability", "digest"], rows), notes=[f"Ask it: {asked}."]
    )
