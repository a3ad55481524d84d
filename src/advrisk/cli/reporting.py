"""`advrisk report`: everything a run answers, in one file."""

from typing import TYPE_CHECKING, Annotated

import typer

from advrisk.cli.options import of_part
from advrisk.core.errors import StudyError

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.api.reporting import Form

STDOUT = "-"


@of_part
def report(
    run: "Run",
    out: Annotated[
        str | None,
        typer.Option(help="Where it goes (default: report.html, .pdf, … in the run); - prints text forms."),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="A PDF instead, printed by Chromium or Chrome.")] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Two pages as a PDF instead, for readers new to machine learning.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="A short text instead, for a pull request.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Every number instead, as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Every number instead, as a folder of CSV tables.")] = False,
) -> None:
    """Write everything a run answers to one HTML file.

    The file is self-contained; --pdf, --summary, --markdown, --json and --csv write other forms. --model and
    --where restrict it to a part of the run; the other options ask for damage as in `advrisk show damage`.

    Example: advrisk report runs/signs --out signs.html
    """
    from advrisk.api.reporting import form_text
    from advrisk.ledger.sync.remote import url_below

    form = _chosen({"pdf": pdf, "summary": summary, "markdown": markdown, "json": as_json, "csv": csv})
    if out == STDOUT:
        print(form_text(run, form), end="")
        return
    beside = "; open it in a browser" if form == "html" else ""
    written = run.report(out, form=form)
    at = out or (url_below(run.url, written.name) if run.url else written)
    print(f"{at} written{beside}")


def _chosen(asked: "dict[Form, bool]") -> "Form":
    named = [form for form, wanted in asked.items() if wanted]
    if len(named) > 1:
        flags = " and ".join(f"--{form}" for form in named)
        raise StudyError(f"a report is written in one form at a time, found {flags}; run the command once for each")
    return named[0] if named else "html"
