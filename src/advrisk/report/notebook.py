"""What a notebook shows of each answer: its headline in words, and a short table with intervals."""

from advrisk.assess.built_in import COMPARISON, QUESTIONS
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.protocol import Finding
from advrisk.core.notebook import html_block, html_table, notebook_html
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.sections import Unanswered
from advrisk.render.notebook import sections_html
from advrisk.report.findings import Findings
from advrisk.report.headline import headline, shares_at, size_columns
from advrisk.report.records import headlines
from advrisk.report.summary import damage_name, percent
from advrisk.risk.convergence import DAMAGE, Convergence

_NOT_ASKED = "not asked"
# Those without sections yet, and what of `Findings` answers them.
_UNSECTIONED = {"damage": "damage", "indicators": "indicators", "survival": "survival", "certificate": "certificates"}

for _question in (*QUESTIONS.values(), COMPARISON):
    notebook_html.register(_question.result)(lambda found, shown=_question.of_one: sections_html(list(shown(found))))


@notebook_html.register
def _(found: DamageAssessment) -> str:
    rows = [
        [
            one.model,
            *(percent(shares_at(one, found)[eps]) for eps in found.thresholds),
            percent(one.clean_accuracy),
            one.ranked_by if found.relative else percent(one.ranked_by),
            one.verdict,
        ]
        for one in found.models
    ]
    columns = ["model", *size_columns(found), "clean accuracy", damage_name(relative=found.relative), "verdict"]
    told = f"{len(found.distances.samples)} samples, {len(found.distances.arms)} arms, {found.distances.norm}"
    notes = [f"{told}; intervals at {level_text(found.level)}. A better attack can only break more."]
    if found.relative and found.comparison:
        notes.append("Relative damage compares these models: with others the numbers change.")
    notes += [*dict.fromkeys(text for pair in found.pairs for text in pair.conflicts), *found.part, *found.notes]
    return html_block(headline(found), html_table(columns, rows), notes=notes)


@notebook_html.register
def _(found: Convergence) -> str:
    ends = sorted({0, len(found.n) // 2, len(found.n) - 1})
    rows = []
    for model in found.models:
        band = found.bands[model][DAMAGE]
        rows.append([model, *(f"{band.middle[k]:.3f} [{band.low[k]:.3f}, {band.high[k]:.3f}]" for k in ends)])
    columns = ["model", *(f"n = {found.n[place]}" for place in ends)]
    title = f"How {damage_name(relative=found.relative)} settles as samples are added"
    return html_block(title, html_table(columns, rows), notes=[f"Medians and bands of {found.resamples} resamples."])


@notebook_html.register
def _(found: Findings) -> str:
    first, *others = headlines(found) or ["This run answers no question yet"]
    asked = {name: found.built_in.get(name) for name in QUESTIONS} | dict(found.further)
    answers = {name: _answer(one) for name, one in asked.items()}
    for name, attribute in _UNSECTIONED.items():
        held = getattr(found, attribute)
        answers.setdefault(name, "answered" if not isinstance(held, str) else held or _NOT_ASKED)
    notes = [sentence for sentence in others if sentence not in answers.values()]
    return html_block(first, html_table(["question", "answer"], list(answers.items())), notes=notes)


def _answer(found: Finding | Unanswered | None) -> str:
    """Its headline, or why there is none."""
    if isinstance(found, Finding):
        return found.headline or "answered"
    return _NOT_ASKED if found is None else f"no answer: {found}"


@notebook_html.register
def _(found: Finding) -> str:
    return sections_html(found.sections)


def percent_of(share: float) -> str:
    """A share without an interval."""
    return percent_text(share, 1)
