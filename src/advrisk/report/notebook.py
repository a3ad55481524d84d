"""What a notebook shows of each answer: its headline in words, and a short table with intervals."""

from advrisk.assess.built_in import QUESTIONS
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.compare.records import RunComparison
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.gate.records import GateResult
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate
from advrisk.core.notebook import html_block, html_table, notebook_html
from advrisk.core.numbers import level_text, percent_text, size_text
from advrisk.core.sections import Unanswered
from advrisk.ledger.searches import SearchRecord
from advrisk.render.notebook import sections_html
from advrisk.report.certificate_figures import p_text
from advrisk.report.certificates import certificate_headlines
from advrisk.report.detection import fpr_name, on_arms, on_left_out, on_samples
from advrisk.report.findings import Findings
from advrisk.report.headline import headline, shares_at, size_columns
from advrisk.report.records import headlines
from advrisk.report.search import search_words
from advrisk.report.summary import damage_name, percent
from advrisk.report.survival import doubt_words, median_text, number_text, survival_headline
from advrisk.report.verdicts import Verdicts, comparison_verdicts, gate_verdicts
from advrisk.risk.convergence import DAMAGE, Convergence

_UNTOLD = "nobody asked"

for _question in QUESTIONS.values():
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
def _(found: GateResult) -> str:
    return _verdicts(gate_verdicts(found))


@notebook_html.register
def _(found: RunComparison) -> str:
    return _verdicts(comparison_verdicts(found))


def _verdicts(found: Verdicts) -> str:
    rows = [[case.name, case.word, case.value, "; ".join((case.reason, *case.beside))] for case in found.cases]
    table = html_table(["requirement", "verdict", "value", "why"], rows)
    return html_block(found.heading, table, notes=list(found.notes))


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
def _(found: DetectionAssessment) -> str:
    parts = []
    for model in found.models:
        tables = [one for one in found.tables if one.model == model]
        rows = [
            [one.name, one.table.n_arms, one.overall.auroc, one.overall.chance_auroc, one.overall.fpr_at_tpr]
            for one in tables
        ]
        caption_ = f"{model}: {on_samples(tables[0])}; {on_arms(tables)}"
        parts.append(html_table(["detector", "arms", "AUROC", "chance", fpr_name(found.tpr)], rows, caption=caption_))
    left_out = dict.fromkeys(sentence for one in found.tables for sentence in on_left_out(one.table))
    return html_block("How well detectors hold against all arms together", *parts, notes=[*left_out, *found.notes])


@notebook_html.register
def _(found: SurvivalAssessment) -> str:
    rows = [
        [
            one.model,
            _to_three(one.mean),
            median_text(one),
            one.tally.events,
            one.tally.censored,
            percent(one.clean_accuracy),
        ]
        for one in found.models
    ]
    columns = ["model", f"mean up to {found.until:.4g}", "median", "broken", "held", "clean accuracy"]
    doubt = [doubt_words(found)] if found.doubt else []
    notes = [f"Durations in {found.unit}.", *doubt, *found.notes]
    return html_block(survival_headline(found), html_table(columns, rows), notes=notes)


@notebook_html.register
def _(found: CertificateAssessment) -> str:
    rows = [
        [
            one.model,
            f"{one.norm} {size_text(one.eps)}",
            None if one.certificate is None else percent(one.certificate.worst.risk),
            None if one.p is None else p_text(one.p),
            p_text(one.level),
            one.verdict,
        ]
        for one in found.lists
    ]
    columns = ["model", "within", "worst attack broke", "p", "held against", "verdict"]
    first, *others = certificate_headlines(found)
    return html_block(first, html_table(columns, rows), notes=[*others, *found.notes])


@notebook_html.register
def _(found: SearchRecord) -> str:
    trials = sorted(found.trials, key=lambda trial: trial.order)
    rows = [[one.text, one.failures, one.n, one.round, one.by, one.frozen] for one in trials]
    columns = ["setting", "broken", "of", "round", "by", "frozen"]
    return html_block(found.label, html_table(columns, rows), notes=[search_words(found)])


@notebook_html.register
def _(found: Findings) -> str:
    first, *others = headlines(found) or ["This run answers no question yet"]
    rows = [
        [name, "answered" if not isinstance(answer, str) else answer or _UNTOLD]
        for name, answer in {
            "damage": found.damage,
            "detection": found.detection,
            "indicators": found.indicators,
            "survival": found.survival,
            "certificate": found.certificates,
            **{name: str(one) if isinstance(one, Unanswered) else one for name, one in found.further.items()},
        }.items()
    ]
    return html_block(first, html_table(["question", "answer"], rows), notes=others)


@notebook_html.register
def _(found: Finding) -> str:
    return sections_html(found.sections)


def percent_of(share: float) -> str:
    """A share without an interval."""
    return percent_text(share, 1)


def _to_three(found: Estimate | None) -> str | None:
    if found is None:
        return None
    return f"{number_text(found.value)} [{number_text(found.low)}, {number_text(found.high)}]"
