"""A run's report in every form: where it goes by default, who writes it, and its text where it is one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from advrisk.core.errors import RunError, StudyError
from advrisk.core.files import write_whole
from advrisk.core.names import did_you_mean
from advrisk.core.plain import json_text
from advrisk.ledger.sync.files import output_file, output_folder
from advrisk.ledger.sync.remote import Remote, url_below, url_of
from advrisk.report import write_report
from advrisk.report.csv_files import write_folder
from advrisk.report.html import report_page
from advrisk.report.markdown import report_markdown
from advrisk.report.pdf import find_chromium, write_pdf
from advrisk.report.records import findings_record, findings_tables, write_json
from advrisk.report.summary import summary_page

if TYPE_CHECKING:
    from advrisk.api.run import Run

Form = Literal["html", "pdf", "summary", "markdown", "json", "csv"]


@dataclass(frozen=True)
class ReportForm:
    """What a form is called in the run's folder, what writes it, and what gives its text, where it is one."""

    name: str
    write: Callable[["Run", Path], Path]
    text: Callable[["Run"], str] | None = None
    endings: tuple[str, ...] = ()  # of files; none of a folder


def write_form(run: "Run", path: str | Path | None, form: Form) -> Path:
    """Write the report in one form, into the run's folder or to its URL unless a path is given."""
    found = _known(form)
    place = path or (url_below(run.url, found.name) if run.url else run.folder / found.name)
    if form == "csv":
        target = output_folder(place, "a report as CSV")
        _refuse_other(run, place, target, found)
        return found.write(run, target)
    with output_file(place, keep=True) as target:
        _refuse_other(run, place, target, found)
        return found.write(run, target)


def _refuse_other(run: "Run", place: str | Path, target: Path, form: ReportForm) -> None:
    """A name that says it is something else, or what the run itself is made of, is not written over."""
    if form.endings and target.suffix.lower() not in form.endings:
        raise RunError(f"{target}: such a report is called *{form.endings[0]}; choose another name, or another form")
    home = run.folder.resolve()
    within = target.exists() and home in target.resolve().parents and target.resolve() != home / form.name
    if within or _is_of_run(run, place, form):
        raise RunError(f"{target}: belongs to the run, and is not written over; choose another name")


def _is_of_run(run: "Run", place: str | Path, form: ReportForm) -> bool:
    """Whether a URL is that of a file of the run."""
    if not (run.url and (url := url_of(place))):
        return False
    home, asked = Remote.open(run.url), Remote.open(url).root
    name = asked.removeprefix(f"{home.root}/")
    return name not in (asked, form.name) and home.seen(name) is not None


def form_text(run: "Run", form: Form) -> str:
    """The report as text, for standard output."""
    found = _known(form)
    if found.text is None:
        texts = " or ".join(f"--{name}" for name, one in _FORMS.items() if one.text is not None)
        raise StudyError(f"a report as {form} is no text to be printed; give a file (`--out FILE`), or {texts}")
    return found.text(run)


def run_record(run: "Run") -> dict[str, Any]:
    """Everything the run answers, as plain values."""
    return findings_record(run.name, run.ledger, run.study, run.findings())


def _known(form: str) -> ReportForm:
    if form not in _FORMS:
        raise StudyError(f"a report has no form {form!r}; {did_you_mean(form, _FORMS)}")
    return _FORMS[form]


def _html(run: "Run", target: Path) -> Path:
    return write_report(run.folder, run.ledger, run.study, target, run.findings())


def _pdf(run: "Run", target: Path) -> Path:
    find_chromium()  # before everything is assessed for nothing
    return write_pdf(report_page(run.folder, run.ledger, run.study, run.findings()), target)


def _summary(run: "Run", target: Path) -> Path:
    find_chromium()
    return write_pdf(summary_page(run.folder, run.ledger, run.study, run.findings()), target)


def _markdown(run: "Run") -> str:
    return report_markdown(run.folder, run.ledger, run.study, run.findings())


def _write_markdown(run: "Run", target: Path) -> Path:
    return write_whole(target, _markdown(run), "the report")


def _json(run: "Run") -> str:
    return json_text(run_record(run)) + "\n"


def _write_json(run: "Run", target: Path) -> Path:
    return write_json(target, run_record(run))


def _csv(run: "Run", target: Path) -> Path:
    found = run.findings()
    return write_folder(findings_tables(found), target, about={"filter": found.view.as_dict(), "asked": found.asked})


_FORMS: Mapping[str, ReportForm] = {
    "html": ReportForm("report.html", _html, endings=(".html", ".htm")),
    "pdf": ReportForm("report.pdf", _pdf, endings=(".pdf",)),
    "summary": ReportForm("summary.pdf", _summary, endings=(".pdf",)),
    "markdown": ReportForm("report.md", _write_markdown, _markdown, (".md", ".markdown", ".txt")),
    "json": ReportForm("report.json", _write_json, _json, (".json",)),
    "csv": ReportForm("report-csv", _csv),
}
