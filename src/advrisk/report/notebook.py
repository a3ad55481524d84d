"""What a notebook shows of each answer: its headline in words, and a short table with intervals."""

from advrisk.assess.built_in import QUESTIONS
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.compare.records import RunComparison
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.failures.modes import FailureModes
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate
from advrisk.core.notebook import html_block, html_table, notebook_html
from advrisk.core.numbers import percent_text, size_text
from advrisk.core.sections import Unanswered
from advrisk.core.values import estimate_text
from advrisk.ledger.searches import SearchRecord
from advrisk.render.notebook import sections_html
from advrisk.report.certificate_figures import p_text
from advrisk.report.certificates import certificate_headlines
from advrisk.report.detection import fpr_name, on_arms, on_left_out, on_samples
from advrisk.report.failures import caption, heading
from advrisk.report.findings import Findings
from advrisk.report.indicators import risk_headline
from advrisk.report.records import headlines
from advrisk.report.search import search_words
from advrisk.report.survival import doubt_words, median_text, number_text, survival_headline
from advrisk.report.verdicts import Verdicts, comparison_verdicts, gate_verdicts

_UNTOLD = "nobody asked"

for _question in QUESTIONS.values():
    notebook_html.register(_question.result)(
        lambda found, shown=_question.sections: sections_html(list(shown(found, ())))
    )


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
def _(found: IndicatorAssessment) -> str:
    parts = []
    for result in found.results:
        rows = [[one.model, one.risk, one.probability_best, one.verdict] for one in result.models]
        told = f"{result.scenario.name}, {result.loss}: {risk_headline(result)}"
        parts.append(html_table(["model", "risk", "probability of being best", "verdict"], rows, caption=told))
    return html_block("Risk in a described deployment", *parts, notes=found.notes)


@notebook_html.register
def _(found: FailureModes) -> str:
    rows = [
        [mode.model, heading(mode, found), one.sample, caption(one), one.arm]
        for mode in found.modes
        for one in mode.failures
    ]
    title = f"What fails in {found.scenario} ({found.loss})"
    return html_block(title, html_table(["model", "branch", "sample", "what happened", "arm"], rows))


@notebook_html.register
def _(found: SurvivalAssessment) -> str:
    rows = [
        [
            one.model,
            _to_three(one.mean),
            median_text(one),
            one.tally.events,
            one.tally.censored,
            estimate_text(one.clean_accuracy, "share"),
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
            None if one.certificate is None else estimate_text(one.certificate.worst.risk, "share"),
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
