"""`advrisk select`: which model the evidence names."""

from typing import Annotated

import typer

from advrisk.cli.options import (
    AsJson,
    Details,
    OfAnswers,
    OfArms,
    OfCost,
    OfDetector,
    OfEps,
    OfEvasion,
    OfFalseAlarms,
    OfModels,
    OfNorm,
    OfThreshold,
    OfWhere,
    RunFolder,
    damage_options,
)


def select(
    folder: RunFolder,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Select by this scenario of the study; repeat for more.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="Select by risk under this loss (default: the first).")] = None,
    model: OfModels = None,
    where: OfWhere = None,
    norm: OfNorm = None,
    arm: OfArms = None,
    eps: OfEps = None,
    evasion: OfEvasion = None,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    cost: OfCost = None,
    answers: OfAnswers = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Name the least bad model, and say whether it meets requirements.

    Exit code 0: it does, or none is stated; 1: it does not; 4: undecided.

    A study's scenarios decide where it states some; --evasion, --detector or --cost select by damage instead.

    Example: advrisk select runs/signs --evasion evasion.json --cost 25000
    """
    from advrisk.api import Run
    from advrisk.cli.damage import print_selection
    from advrisk.core.plain import json_text

    asked = damage_options(norm, arm, eps, evasion, detector, threshold, false_alarms)
    asked |= {"cost": cost, "answers": answers}
    part = Run.open(folder).part(models=model, where=where, **asked)
    found = part.select(scenario=scenario, loss=loss)
    if as_json:
        print(json_text(found.as_dict() | {"filter": part.view.as_dict()}))
    else:
        print_selection(found, details=details)
    raise typer.Exit(found.exit_code)
