"""`advrisk show detection`: detectors against all arms at once."""

from typing import Annotated

import typer

from advrisk.cli.options import (
    AsJson,
    OfArms,
    OfCsv,
    OfFalseAlarms,
    OfModels,
    OfThreshold,
    OfWhere,
    RunFolder,
    alarm_threshold,
)


def detection(
    folder: RunFolder,
    detector: Annotated[
        list[str] | None, typer.Option(metavar="DETECTOR", help="Show this detector in full; repeat for more.")
    ] = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    groups: Annotated[bool, typer.Option("--groups", help="Show every norm, size and objective.")] = False,
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Show the ROC of one group, as in linf-8/255.")
    ] = None,
    tpr: Annotated[
        float | None, typer.Option(help="The share of attacks to detect (default: the study's, 0.95).")
    ] = None,
    arm: OfArms = None,
    model: OfModels = None,
    where: OfWhere = None,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate detectors against all attacks at once.

    Example: advrisk show detection runs/signs --group linf-8/255
    """
    from advrisk.api import Run
    from advrisk.cli.detection import show_detection

    limit = alarm_threshold(threshold, false_alarms)
    run = Run.open(folder).part(where=where)
    show_detection(run, detector, model, arm, limit, tpr, groups=groups, group=group, out_csv=out_csv, as_json=as_json)
