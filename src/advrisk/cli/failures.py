"""`advrisk show failures`: which failures are asked about, and as a contact sheet."""

import sys
from typing import TYPE_CHECKING

from advrisk.assess.failures.contact_sheet import write_contact_sheet
from advrisk.cli.lines import show_finding
from advrisk.core.errors import StudyError
from advrisk.ledger.sync.files import output_file

if TYPE_CHECKING:
    from advrisk.api import Run


def show_failures(
    run: "Run",
    scenario: list[str] | None,
    loss: list[str] | None,
    model: list[str] | None,
    n: int | None,
    *,
    out: str | None,
    details: bool,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show failures RUN`: the worst branches, and the samples that fail there."""
    asked = {"scenario": _one("--scenario", scenario), "loss": _one("--loss", loss), "model": _one("--model", model)}
    found = run.failures(**asked, samples=n)
    if out is not None:
        with output_file(out) as path:
            n_drawn = write_contact_sheet(run.ledger.storage, found, path)
        print(f"{n_drawn} inputs drawn in {out}", file=sys.stderr)
    show_finding(run, "failures", found, details=details, out_csv=out_csv, as_json=as_json)


def _one(option: str, given: list[str] | None) -> str | None:
    if given is not None and len(given) > 1:
        raise StudyError(f"{option}: failures are shown of one at a time, found {', '.join(given)}")
    return given[0] if given else None
