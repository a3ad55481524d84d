"""A run's report in every form: one table says which function makes which, and where it goes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from advrisk.core.errors import RunError
from advrisk.core.files import whole_file
from advrisk.core.names import did_you_mean
from advrisk.report import write_report
from advrisk.report.html import report_page
from advrisk.report.markdown import report_markdown
from advrisk.report.pdf import find_chromium, write_pdf

if TYPE_CHECKING:
    from advrisk.api.run import Run

Form = Literal["html", "pdf", "markdown", "json", "csv"]


@dataclass(frozen=True)
class ReportForm:
    """How a form is written to a file, what that is called by default, and its text, where it is one."""

    name: str
    write: Callable[["Run", Path], Path]
    text: Callable[["Run"], str] | None = None


def write_form(run: "Run", path: str | Path | None, form: Form) -> Path:
    """Write a report in that form; without a path, into the run's folder."""
    found = _known(form)
    return found.write(run, Path(path) if path else run.folder / found.name)


def form_text(run: "Run", form: Form) -> str:
    """The report as text, for standard output."""
    found = _known(form)
    if found.text is None:
        texts = " or ".join(f"--{name}" for name, one in FORMS.items() if one.text is not None)
        raise RunError(f"a report as {form} is no text to be printed; give a file (`--out FILE`), or {texts}")
    return found.text(run)


def _known(form: str) -> ReportForm:
    if form not in FORMS:
        raise RunError(f"there is no report as {form!r}; {did_you_mean(form, FORMS)}")
    return FORMS[form]


def _html(run: "Run", target: Path) -> Path:
    return write_report(run.folder, run.ledger, run.study, target, run.findings())


def _pdf(run: "Run", target: Path) -> Path:
    find_chromium()  # before everything is assessed for nothing
    return write_pdf(report_page(run.folder, run.ledger, run.study, run.findings()), target)


def _markdown(run: "Run") -> str:
    return report_markdown(run.folder, run.ledger, run.study, run.findings())


def _write_markdown(run: "Run", target: Path) -> Path:
    return _written(target, _markdown(run))


def _written(target: Path, text: str) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{target}: the report cannot be written: {error.strerror}") from None
    return target


FORMS: dict[str, ReportForm] = {
    "html": ReportForm("report.html", _html),
    "pdf": ReportForm("report.pdf", _pdf),
    "markdown": ReportForm("report.md", _write_markdown, _markdown),
}
