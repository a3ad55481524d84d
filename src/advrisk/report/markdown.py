"""The report for a pull request: the executive summary and the main tables as Markdown."""

from pathlib import Path

from advrisk.assess.findings import Findings
from advrisk.ledger import Ledger
from advrisk.render.markdown import escaped, markdown_lines
from advrisk.report.executive import brief, executive_summary
from advrisk.report.provenance import Provenance, provenance
from advrisk.study import StudySpec


def report_markdown(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> str:
    """The whole text."""
    made = provenance(folder, ledger, study, found)
    summary = executive_summary(ledger, study, found)
    lines = [f"## {escaped(brief(made.name))}: {escaped(summary.answer)}", ""]
    about = [*found.view.sentences(), *(f"{name}: {value}." for name, value in found.asked.items())]
    lines += [escaped(brief(" ".join(about))), ""] if about else []
    for label, sentences in summary.parts():
        lines += [f"**{label}**", "", *(f"- {escaped(sentence)}" for sentence in sentences), ""]
    for one in found.answered:
        lines += markdown_lines(one.title, one.sections)
    return "\n".join([*lines, *_made(made)])


def _made(made: Provenance) -> list[str]:
    seed = "" if made.seed is None else f", seed {made.seed}"
    versions = f"advrisk {', '.join(made.versions) or made.advrisk}, torch {', '.join(made.torch) or 'unknown'}"
    samples = ", ".join(f"{split.n:,} to {split.name}" for split in made.splits)
    told = [
        f"Study {brief(made.name)}{seed}; {versions}; samples: {samples or 'none'}. Brackets hold intervals.",
        "Everything else, with figures: `advrisk report RUN`.",
    ]
    return [escaped(told[0]), "", told[1], ""]
