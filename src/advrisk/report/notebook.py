"""Results as Python shows them: `print(found)` as in a terminal, and as a short table in a notebook."""

from collections.abc import Iterator, Mapping, Sequence
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
from advrisk.core.sections import Column, Headline, Kind, Section, Table, Text, Unanswered, without_twins
from advrisk.core.tables import ColumnType
from advrisk.render.notebook import html_block, html_table, sections_html
from advrisk.render.terminal import printed
from advrisk.report.records import headlines
from advrisk.study import assessments

_KINDS: Mapping[ColumnType, Kind] = {"text": "text", "number": "precise", "count": "count", "flag": "flag"}


def notebook_html(found: Any) -> str:
    """A result as HTML."""
    return sections_html(result_sections(found))


def terminal_text(found: Any) -> str:
    """A result as a terminal shows it."""
    return printed(result_sections(found))


@singledispatch
def result_sections(found: Any) -> Sequence[Section]:
    """A result for people: its rows, unless a function is registered for its type."""
    columns = tuple(Column(name, _KINDS[kind]) for name, kind in found.columns.items())
    rows = tuple(tuple(row.get(name) for name in found.columns) for row in found.rows())
    return [Headline(type(found).__name__), Table("", columns, rows)]


for _name in assessments.built_in:
    if (_kind := assessment_named(_name).kind) is not None:
        result_sections.register(_kind)(lambda found, name=_name: finding_of(name, found).sections)


@result_sections.register
def _(found: Estimate) -> Sequence[Section]:
    columns = (Column("value"), Column("samples"), Column("method"))
    return [Table("", columns, ((f"{found} at {level_text(found.level)}", str(found.n), found.method),))]


@result_sections.register
def _(found: RunComparison) -> Sequence[Section]:
    return without_twins(comparison_sections(found))


@result_sections.register
def _(found: Status) -> Sequence[Section]:
    return list(status_sections(found))


@result_sections.register
def _(found: Findings) -> Sequence[Section]:
    return list(_answers(found))


def _answers(found: Findings) -> Iterator[Section]:
    first, *others = headlines(found) or ["This run answers no question yet"]
    asked = {name: found.answers.get(name) for name in {**assessments.built_in, **found.answers}}
    answers = {name: _answer(one) for name, one in asked.items()}
    yield Headline(first)
    yield Table("", (Column("question"), Column("answer")), tuple(answers.items()))
    yield Text(tuple(sentence for sentence in others if sentence not in answers.values()))


def _answer(found: Finding | Unanswered | None) -> str:
    """Its headline, or why there is none."""
    if isinstance(found, Finding):
        return found.headline or "answered"
    return "not asked" if found is None else f"no answer: {found}"


@result_sections.register
def _(found: Finding) -> Sequence[Section]:
    return found.sections


def run_html(name: str, folder: Path, status: Status, models: Sequence[Mapping[str, Any]]) -> str:
    """How far a run is, and what to ask it."""
    asked = "damage() · detection() · indicators() · survival() · certificate() · figures() · report()"
    rows = [[row["model"], row["capability"], row["digest"]] for row in models]
    parts = (f"<p>{escape(str(folder))}</p>", notebook_html(status))
    return html_block(
        f"Run {name}", *parts, html_table(["model", "capability", "digest"], rows), notes=[f"Ask it: {asked}."]
    )
