"""A run's report in every form: where it goes by default, and who writes it."""

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean
from advrisk.core.notebook import html_block, html_table, notebook_html
from advrisk.report import write_report
from advrisk.report.csv_files import write_folder
from advrisk.report.records import findings_record, findings_tables, write_json

if TYPE_CHECKING:
    from advrisk.api.run import Run

Form = Literal["html", "pdf", "markdown", "json", "csv"]


def write_form(run: "Run", path: str | Path | None, form: Form) -> Path:
    """Write the report in one form, into the run's folder unless a path is given."""
    if form not in _FORMS:
        raise StudyError(f"a report has no form {form!r}; {did_you_mean(form, _FORMS)}")
    default, write = _FORMS[form]
    return write(run, Path(path) if path else run.folder / default)


def run_record(run: "Run") -> dict[str, Any]:
    """Everything the run answers, as plain values."""
    return findings_record(run.name, run.ledger, run.study, run.findings())


def run_html(run: "Run") -> str:
    """What a notebook shows of a run: how far it is, and what to ask it."""
    asked = "damage() · detection() · indicators() · survival() · certificate() · figures() · report()"
    rows = [[row["model"], row["capability"], row["digest"]] for row in run.models()]
    parts = (f"<p>{escape(str(run.folder))}</p>", notebook_html(run.status()))
    return html_block(
        f"Run {run.name}", *parts, html_table(["model", "capability", "digest"], rows), notes=[f"Ask it: {asked}."]
    )


def _html(run: "Run", target: Path) -> Path:
    return write_report(run.folder, run.ledger, run.study, target, run.findings())


def _json(run: "Run", target: Path) -> Path:
    return write_json(target, run_record(run))


def _csv(run: "Run", target: Path) -> Path:
    return write_folder(findings_tables(run.findings()), target)


# Each form: its name in the run's folder, and what writes it.
_FORMS: Mapping[str, tuple[str, Callable[["Run", Path], Path]]] = {
    "html": ("report.html", _html),
    "json": ("report.json", _json),
    "csv": ("report-csv", _csv),
}
