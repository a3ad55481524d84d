"""A finding for machines: rows to a file, JSON to standard output."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from advrisk.assess.protocol import finding_of
from advrisk.assess.selection.answer import unfinished_words
from advrisk.cli.options import Output
from advrisk.cli.verbosity import is_quiet, note
from advrisk.core.plain import json_text
from advrisk.core.tables import Tabular
from advrisk.ledger.sync.files import output_file
from advrisk.render.terminal import Terminal, has_more, indented, print_sections
from advrisk.report.csv_files import write_rows

if TYPE_CHECKING:
    from advrisk.api import Run


def shown_part(
    run: "Run", told: Callable[[], Mapping[str, Any]], show: Callable[[], None]
) -> tuple[Callable[[], Mapping[str, Any]], Callable[[], None]]:
    """How to record and how to print a finding that does not say itself which part of the run it is about."""

    def printed() -> None:
        print_part(run)
        show()

    about = {"filter": run.view.as_dict()} if run.view else {}
    return (lambda: {**told(), **about}), printed


def show_finding(run: "Run", name: str, found: Any, output: Output) -> None:
    """The answer to a built-in question, or several: rows to a file, records, or sections."""

    def show() -> None:
        state = run.status()
        if not state.done:
            indented(Terminal(), unfinished_words(state.so_far), by=0)
        sections = finding_of(name, found).sections
        print_sections(sections, details=output.details)
        if not output.details and not is_quiet() and has_more(sections):
            indented(Terminal(), "· --details shows every table and column.", by=0)

    if not isinstance(found, tuple):
        show_result(found, *shown_part(run, found.as_dict, show), output)
        return
    rows = (row for one in found for row in one.rows())
    show_rows(rows, found[0].columns, lambda: found, show, output)


def print_part(run: "Run") -> None:
    """Which models and samples what follows is about, if not all."""
    for sentence in run.view.sentences():
        indented(Terminal(), f"· {sentence}", by=0)


def show_result(
    found: Tabular, told: Callable[[], Mapping[str, Any]], show: Callable[[], None], output: Output
) -> None:
    """Write the rows, if a file is named for them; print what is told as JSON, or show it."""
    show_rows(() if output.out_csv is None else found.rows(), found.columns, told, show, output)


def show_rows(
    rows: Iterable[Mapping[str, Any]],
    columns: Iterable[str],
    told: Callable[[], object],
    show: Callable[[], None],
    output: Output,
) -> None:
    """The same of rows that are no one result."""
    if output.out_csv is not None:
        with output_file(output.out_csv) as path:
            n_lines = write_rows(rows, columns, path)
        note(f"{n_lines} lines written to {output.out_csv}")
    print(json_text(told())) if output.as_json else show()
