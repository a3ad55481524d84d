"""Damage, arms and models: ask the run, then print or write the answer."""

from collections.abc import Callable
from typing import Any

from advrisk.api import Run
from advrisk.cli.damage import print_damage, print_selection
from advrisk.cli.lines import print_part, show_result
from advrisk.core.plain import json_text
from advrisk.core.sections import Table
from advrisk.render.terminal import Terminal, indented, print_sections

Rows = list[dict[str, Any]]


def show_damage(run: Run, *, details: bool, out_csv: str | None, as_json: bool) -> None:
    """Damage, below what the evidence names."""
    chosen = run.select()
    about = {"filter": run.view.as_dict()} if run.view else {}
    if chosen.damage is None and chosen.scenarios and out_csv is None:  # corruptions alone
        print(json_text(chosen.as_dict() | about)) if as_json else print_selection(chosen, details=details)
        if not as_json:
            indented(
                Terminal(), "· Damage needs attacks with a norm; the study's own question is answered above.", by=0
            )
        return
    found = chosen.damage or run.damage()  # which says why there is none
    show_result(
        found,
        lambda: chosen.as_dict() | about,
        lambda: print_damage(found, chosen.headlines, details=details),
        out_csv=out_csv,
        as_json=as_json,
    )


def show_table(run: Run, rows: Rows, table: Callable[[Rows], Table], *, as_json: bool) -> None:
    """A line for each arm or model of a run."""
    if as_json:
        print(json_text(rows))
        return
    print_part(run)
    print_sections([table(rows)]) if rows else print("no rows")
