"""`advrisk show indicators` and `failures`: the risk of a described deployment, and which inputs fail there.

Options by hand: losses are looked up in the study, scenarios are a file, and failures are of one scenario only.
"""

from pathlib import Path
from typing import Annotated

import typer

from advrisk.cli.options import AsJson, Details, OfArms, OfCsv, OfModels, OfWhere, RunFolder

OfScenario = Annotated[
    list[str] | None, typer.Option("--scenario", metavar="SCENARIO", help="Show this scenario only; repeat for more.")
]
OfLosses = Annotated[
    list[str] | None, typer.Option("--loss", metavar="LOSS", help="Show this loss only; repeat for more.")
]


def indicators(
    folder: RunFolder,
    scenario: OfScenario = None,
    scenarios: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A YAML file with other scenarios than the study's.")
    ] = None,
    loss: OfLosses = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="BRANCH=WEIGHT", help="Another weight, as in wet.rain=0.9; repeat for more."),
    ] = None,
    arm: OfArms = None,
    model: OfModels = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Show the risk in each scenario, and what drives it.

    Example: advrisk show indicators runs/signs --what-if wet=0.5
    """
    from advrisk.api import Run
    from advrisk.cli.indicators import show_indicators

    run = Run.open(folder).part(where=where)
    show_indicators(
        run, scenarios, scenario, loss, model, arm, what_if, details=details, out_csv=out_csv, as_json=as_json
    )


def failures(
    folder: RunFolder,
    scenario: Annotated[
        list[str] | None, typer.Option(metavar="SCENARIO", help="The scenario (default: the study's first).")
    ] = None,
    loss: Annotated[
        list[str] | None, typer.Option(metavar="LOSS", help="The loss (default: the study's first).")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="MODEL", help="Show this model only.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Samples to list per branch (default: 12).")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the inputs as one picture, a .png file.")
    ] = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """List the inputs that fail where a scenario hurts most.

    Example: advrisk show failures runs/signs --model plain --out sheet.png
    """
    from advrisk.api import Run
    from advrisk.cli.failures import show_failures

    run = Run.open(folder).part(where=where)
    show_failures(run, scenario, loss, model, samples, out=out, details=details, out_csv=out_csv, as_json=as_json)
