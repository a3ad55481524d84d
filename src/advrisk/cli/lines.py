"""A finding for machines: rows to a file, JSON to standard output."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from advrisk.assess.protocol import finding_of
from advrisk.core.plain import json_text
from advrisk.core.tables import Tabular
from advrisk.ledger.sync.files import output_file
from advrisk.render.terminal import Terminal, has_more, indented, print_sections
from advrisk.report.answer import unfinished_words
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


def show_finding(
    run: "Run", name: str, found: Any, *, details: bool = False, out_csv: str | None = None, as_json: bool = False
) -> None:
    """The answer to a built-in question, or several: rows to a file, records, or sections."""

    def show() -> None:
        state = run.status()
        if not state.done:
            indented(Terminal(), unfinished_words(state.so_far), by=0)
        sections = finding_of(name, found).sections
        print_sections(sections, details=details)
        if not details and has_more(sections):
            indented(Terminal(), "· --details shows every table and column.", by=0)

    if not isinstance(found, tuple):
        show_result(found, *shown_part(run, found.as_dict, show), out_csv=out_csv, as_json=as_json)
        return
    show_rows(
        lambda: [row for one in found for row in one.rows()],
        found[0].columns,
        lambda: found,
        show,
        out_csv=out_csv,
        as_json=as_json,
    )


def print_part(run: "Run") -> None:
    """Which models and samples what follows is about, if not all."""
    for sentence in run.view.sentences():
        indented(Terminal(), f"· {sentence}", by=0)


def show_result(
    found: Tabular,
    told: Callable[[], Mapping[str, Any]],
    show: Callable[[], None],
    *,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """Write the rows, if a file is named for them; print what is told as JSON, or show it."""
    show_rows(found.rows, found.columns, told, show, out_csv=out_csv, as_json=as_json)


def show_rows(
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    columns: Iterable[str],
    told: Callable[[], object],
    show: Callable[[], None],
    *,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """The same of rows that are no one result."""
    if out_csv is not None:
        with output_file(out_csv) as path:
            n_lines = write_rows(rows(), columns, path)
        print(f"{n_lines} lines written to {out_csv}", file=sys.stderr)
    print(json_text(told())) if as_json else show()
