"""`advrisk show`: the summary of a run, what its ledger holds, and the findings of each question."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from advrisk.cli.options import AsJson, OfArms, OfModels, OfWhere, RunFolder, open_part
from advrisk.cli.show.group import FindingGroup

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.core.sections import Table

show_app = typer.Typer(cls=FindingGroup, no_args_is_help=True)


@show_app.callback()
def show() -> None:
    """Show what a run found: its summary, or one finding in full.

    `advrisk show RUN` prints the summary. Each finding has options of its own: `advrisk show survival -h`.

    Example: advrisk show damage runs/signs --evasion evasion.json
    """


@show_app.command()
def summary(folder: RunFolder, model: OfModels = None, where: OfWhere = None, as_json: AsJson = False) -> None:
    """Print the headlines, the decision table and where to read on.

    This is what `advrisk show RUN` does; --json prints every number, as `advrisk report RUN --json` writes it.

    Example: advrisk show summary runs/signs --where class=3
    """
    from advrisk.cli.summary import show_summary

    run = open_part(folder, models=model, where=where)
    show_summary(run, folder, {"--model": model or (), "--where": where or ()}, as_json=as_json)


@show_app.command()
def arms(
    folder: RunFolder, arm: OfArms = None, model: OfModels = None, where: OfWhere = None, as_json: AsJson = False
) -> None:
    """List the arms: how many samples each broke, and at what cost.

    Example: advrisk show arms runs/signs --model plain
    """
    from advrisk.assess.status_sections import arm_table

    run = open_part(folder, models=model, where=where)
    _show_rows(run, run.arms(arms=arm), arm_table, as_json=as_json)


@show_app.command()
def models(folder: RunFolder, model: OfModels = None, as_json: AsJson = False) -> None:
    """List the models: digest, capability and training.

    Example: advrisk show models runs/signs
    """
    from advrisk.assess.status_sections import model_table

    run = open_part(folder, models=model)
    _show_rows(run, run.models(), model_table, as_json=as_json)


def _show_rows(
    run: "Run", rows: Sequence[dict[str, Any]], table: "Callable[[Sequence[dict[str, Any]]], Table]", *, as_json: bool
) -> None:
    """A line for each arm or model of a run."""
    from advrisk.cli.lines import print_part
    from advrisk.core.plain import json_text
    from advrisk.render.terminal import print_sections

    if as_json:
        print(json_text(rows))
        return
    print_part(run)
    print_sections([table(rows)]) if rows else print("no rows")
