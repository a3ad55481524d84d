"""`advrisk select`: which model the evidence names."""

from typing import TYPE_CHECKING, Annotated

import typer

from advrisk.cli.options import AsJson, Details, of_part

if TYPE_CHECKING:
    from advrisk.api import Run


@of_part
def select(
    run: "Run",
    scenario: Annotated[
        list[str] | None, typer.Option(help="Select by this scenario of the study; repeat for more.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="Select by risk under this loss (default: the first).")] = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Name the least bad model, and say whether it meets requirements.

    Exit code 0: it does, or none is stated; 1: it does not; 4: undecided.

    A study's scenarios decide where it states some; --evasion, --detector or --cost select by damage instead.

    Example: advrisk select runs/signs --evasion evasion.json --cost 25000
    """
    from advrisk.cli.damage import print_selection
    from advrisk.core.plain import json_text

    found = run.select(scenario=scenario, loss=loss)
    if as_json:
        print(json_text(found.as_dict() | {"filter": run.view.as_dict()}))
    else:
        print_selection(found, details=details)
    raise typer.Exit(found.exit_code)
