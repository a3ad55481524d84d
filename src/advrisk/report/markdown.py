"""The report for a pull request: the executive summary and the main tables as Markdown."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.protocol import Finding
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, cut
from advrisk.ledger import Ledger
from advrisk.render.markdown import markdown_lines
from advrisk.render.marks import escaped
from advrisk.report.executive import brief, executive_summary
from advrisk.report.findings import Findings
from advrisk.report.headline import shares_at, size_columns
from advrisk.report.provenance import Provenance, provenance
from advrisk.report.summary import damage_name, money, percent
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
    for section in (_damage,):
        lines += section(found)
    built_in = [one for one in found.built_in.values() if isinstance(one, Finding)]
    for one in (*built_in, *found.answered):
        lines += markdown_lines(one.title, one.sections)
    return "\n".join([*lines, *_made(made)])


def _damage(found: Findings) -> list[str]:
    damage = found.damage
    if not isinstance(damage, DamageAssessment):
        return []
    number = damage_name(relative=damage.relative)
    head = ["model", "verdict", *size_columns(damage), "clean accuracy", number]
    if damage.cost is not None:
        head.append("cost of an attacked input")
    rows = []
    for row in damage.models:
        cells = [_name(row.model), _name(row.verdict)]
        cells += [_share(shares_at(row, damage)[eps]) for eps in damage.thresholds]
        cells.append(_share(row.clean_accuracy))
        cells.append(_share(row.damage) if row.damage else _number(row.relative_damage))
        rows.append([*cells, _amount(row.operational_risk)] if damage.cost is not None else cells)
    held = damage.distances
    about = f"{counted(len(held.samples), 'sample')}, {counted(len(held.arms), 'attack')}, {held.norm}"
    conflicts = dict.fromkeys(text for pair in damage.pairs for text in pair.conflicts)
    said = [*(f"- {escaped(brief(text))}" for text in conflicts), ""] if conflicts else []
    return _section(f"Damage ({about})", head, rows, "tt" + "n" * (len(head) - 2)) + said


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
    return percent(estimate)


def _number(estimate: Estimate | None) -> str:
    return "–" if estimate is None else str(estimate)


def _amount(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{money(estimate.value)} [{money(estimate.low)}, {money(estimate.high)}]"
