"""`advrisk show`: the subcommands whose options are written by hand, in the order of the help."""

import typer

from advrisk.cli.show.damage import attacks, convergence, damage
from advrisk.cli.show.detection import detection
from advrisk.cli.show.group import SUMMARY, FindingGroup
from advrisk.cli.show.indicators import failures, indicators
from advrisk.cli.show.rows import arms, models
from advrisk.cli.show.summary import summary

show_app = typer.Typer(cls=FindingGroup, no_args_is_help=True)
show_app.command(SUMMARY)(summary)
for finding in (damage, convergence, attacks, detection, indicators, failures):
    show_app.command()(finding)
for rows in (arms, models):
    show_app.command()(rows)


@show_app.callback()
def show() -> None:
    """Show what a run found: its summary, or one finding in full.

    `advrisk show RUN` prints the summary. Each finding has options of its own: `advrisk show survival -h`.

    Example: advrisk show damage runs/signs --evasion evasion.json
    """
