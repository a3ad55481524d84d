"""Failure modes as text for a terminal, and as a contact sheet."""

import sys
from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.assess.failures.modes import SAMPLES
from advrisk.cli.lines import show_result, shown_part
from advrisk.core.errors import StudyError
from advrisk.ledger.sync.files import output_file
from advrisk.render.terminal import indented, new_table, plain_cells
from advrisk.report.contact_sheet import write_contact_sheet
from advrisk.report.failures import caption, explanation, heading, losses_text

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.failures.modes import FailureMode, FailureModes


def show_failures(
    run: "Run",
    scenario: list[str] | None,
    loss: list[str] | None,
    model: list[str] | None,
    n: int | None,
    *,
    out: str | None,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show failures RUN`: the worst branches, and the samples that fail there."""
    asked = {"scenario": _one("--scenario", scenario), "loss": _one("--loss", loss), "model": _one("--model", model)}
    found = run.failures(**asked, n=SAMPLES if n is None else n)
    if out is not None:
        with output_file(out) as path:
            n_drawn = write_contact_sheet(run.ledger.storage, found, path)
        print(f"{n_drawn} inputs drawn in {out}", file=sys.stderr)
    shown = shown_part(run, found.as_dict, lambda: print_failures(found))
    show_result(found, *shown, out_csv=out_csv, as_json=as_json)


def print_failures(found: "FailureModes") -> None:
    """For each model its worst branches, and under each the worst samples."""
    console = Console()
    console.print(f"{found.scenario}: {found.loss}", style="bold", markup=False, highlight=False)
    for model in found.models:
        if not found.of(model):
            indented(console, f"{model}: no branch has a loss", by=0)
        for mode in found.of(model):
            _print_mode(console, mode, found)


def _print_mode(console: Console, mode: "FailureMode", found: "FailureModes") -> None:
    console.print(f"{mode.model}, {heading(mode, found)}", markup=False, highlight=False)
    indented(console, explanation(mode), by=2)
    table = new_table("sample", "what happened", "loss", "arm")
    for one in mode.failures:
        table.add_row(*plain_cells([one.sample, caption(one), losses_text(one), one.arm]))
    console.print(table)


def _one(option: str, given: list[str] | None) -> str | None:
    if given is not None and len(given) > 1:
        raise StudyError(f"{option}: failures are shown of one at a time, found {', '.join(given)}")
    return given[0] if given else None
