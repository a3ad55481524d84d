"""The report for a pull request: the executive summary and the main tables as Markdown."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate
from advrisk.core.names import cut
from advrisk.core.numbers import size_text
from advrisk.core.values import estimate_text
from advrisk.ledger import Ledger
from advrisk.render.markdown import markdown_lines
from advrisk.render.marks import escaped
from advrisk.report.certificate_figures import p_text
from advrisk.report.detection import on_left_out
from advrisk.report.executive import brief, executive_summary
from advrisk.report.findings import Findings
from advrisk.report.indicator_figures import loss_interval
from advrisk.report.indicators import drivers
from advrisk.report.provenance import Provenance, provenance
from advrisk.report.survival import median_text, number_text
from advrisk.study import StudySpec

MOST_ROWS = 20  # of a table
_NAME = 60  # characters

Cells = Sequence[str]


def report_markdown(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> str:
    """The whole text."""
    made = provenance(folder, ledger, study, found)
    summary = executive_summary(ledger, study, found)
    lines = [f"## {escaped(brief(made.name))}: {escaped(summary.answer)}", ""]
    about = [*found.view.sentences(), *(f"{name}: {value}." for name, value in found.asked.items())]
    lines += [escaped(brief(" ".join(about))), ""] if about else []
    for label, sentences in summary.parts():
        lines += [f"**{label}**", "", *(f"- {escaped(sentence)}" for sentence in sentences), ""]
    for one in found.built_in.values():
        lines += markdown_lines(one.title, one.sections) if isinstance(one, Finding) else []
    for section in (_detection, _indicators, _survival, _certificates):
        lines += section(found)
    for one in found.answered:
        lines += markdown_lines(one.title, one.sections)
    return "\n".join([*lines, *_made(made)])


def _detection(found: Findings) -> list[str]:
    if not isinstance(found.detection, DetectionAssessment):
        return []
    head = ["model", "detector", "arms", "AUROC", "chance", "worst group", "some arm gets past", "most often"]
    rows = []
    for one in found.detection.tables:
        chance = one.overall.chance_auroc
        most = one.defeat.most_often
        past = "–" if most is None else f"{_name(most.arm)}: {_share(most.unseen)}"
        told = "–" if chance is None else f"{chance:.3f}"
        cells = [_name(one.model), _name(one.name), str(one.table.n_arms), _number(one.overall.auroc), told]
        rows.append([*cells, one.table.worst_group or "–", _share(one.defeat.unseen), past])
    lines = _section("Detectors, against all arms that do not know them", head, rows, "ttnnntnt")
    left_out = {sentence: None for one in found.detection.tables for sentence in on_left_out(one.table)}
    return [*lines, *(line for sentence in left_out for line in (f"{sentence[0].upper()}{escaped(sentence[1:])}.", ""))]


def _indicators(found: Findings) -> list[str]:
    if not isinstance(found.indicators, IndicatorAssessment):
        return []
    head = ["scenario", "loss", "model", "risk", "verdict", "what contributes most"]
    rows = [
        [
            *(_name(one.scenario.name), _name(one.loss), _name(model.model)),
            *(loss_interval(model.risk, one.bounds), _name(model.verdict), escaped(brief(drivers(model)))),
        ]
        for one in found.indicators.results
        for model in one.models
    ]
    return _section("Risk in the deployment", head, rows, "tttntt")


def _survival(found: Findings) -> list[str]:
    survival = found.survival
    if not isinstance(survival, SurvivalAssessment):
        return []
    head = ["model", f"mean {survival.unit}, up to {survival.until:.4g}", "median"]
    head += ["broken", "held", "incorrect already"]
    rows = [
        [
            *(_name(one.model), _any(one.mean), median_text(one)),
            *(f"{one.tally.events:,}", f"{one.tally.censored:,}", f"{one.tally.at_zero:,}"),
        ]
        for one in survival.models
    ]
    return _section("How long it survives", head, rows, "tnnnnn")


def _certificates(found: Findings) -> list[str]:
    certificates = found.certificates
    if not isinstance(certificates, CertificateAssessment):
        return []
    head = ["model", "norm", "eps", "verdict", "p", "worst attack: failures"]
    rows = []
    for one in certificates.lists:
        worst = None if one.certificate is None else one.certificate.worst
        failed = "–" if worst is None else f"{worst.count.failures} of {worst.count.n}"
        p = "–" if one.p is None else escaped(p_text(one.p))
        rows.append([_name(one.model), one.norm, size_text(one.eps), one.verdict, p, failed])
    title = f"Certificates (alpha = {100 * certificates.alpha:.4g} %, zeta = {100 * certificates.zeta:.4g} %)"
    return _section(title, head, rows, "ttntnn")


def _made(made: Provenance) -> list[str]:
    seed = "" if made.seed is None else f", seed {made.seed}"
    versions = f"advrisk {', '.join(made.versions) or made.advrisk}, torch {', '.join(made.torch) or 'unknown'}"
    samples = ", ".join(f"{split.n:,} to {split.name}" for split in made.splits)
    told = [
        f"Study {brief(made.name)}{seed}; {versions}; samples: {samples or 'none'}. Brackets hold intervals.",
        "Everything else, with figures: `advrisk report RUN`.",
    ]
    return [escaped(told[0]), "", told[1], ""]


def _section(title: str, head: Cells, rows: Sequence[Cells], columns: str) -> list[str]:
    """A heading and a table; `columns` says of each whether it is text (t) or numbers (n)."""
    marks = ["---" if letter == "t" else "---:" for letter in columns]
    shown = [_line(row) for row in rows[:MOST_ROWS]]
    more = [f"And {len(rows) - MOST_ROWS} more rows.", ""] if len(rows) > MOST_ROWS else []
    return [f"### {title}", "", _line([escaped(cell) for cell in head]), _line(marks), *shown, "", *more]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _name(name: str) -> str:
    return escaped(cut(name, _NAME))


def _share(estimate: Estimate | None) -> str:
    return estimate_text(estimate, "share")


def _number(estimate: Estimate | None) -> str:
    return "–" if estimate is None else str(estimate)


def _any(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{number_text(estimate.value)} [{number_text(estimate.low)}, {number_text(estimate.high)}]"
