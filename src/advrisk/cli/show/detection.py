"""`advrisk show detection`: detectors against all arms at once.

Options by hand: a threshold is given in one of two, and a group is shown by itself.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from advrisk.cli.options import (
    AsJson,
    Details,
    OfArms,
    OfCsv,
    OfFalseAlarms,
    OfModels,
    OfThreshold,
    OfWhere,
    RunFolder,
    alarm_threshold,
)

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.detection.assessment import DetectionAssessment


def detection(
    folder: RunFolder,
    detector: Annotated[
        list[str] | None, typer.Option(metavar="DETECTOR", help="Show this detector only; repeat for more.")
    ] = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Show the ROC of one group, as in linf-8/255.")
    ] = None,
    tpr: Annotated[
        float | None, typer.Option(help="The share of attacks to detect (default: the study's, 0.95).")
    ] = None,
    arm: OfArms = None,
    model: OfModels = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate detectors against all attacks at once.

    Example: advrisk show detection runs/signs --group linf-8/255
    """
    from advrisk.api import Run
    from advrisk.cli.lines import show_finding

    limit = alarm_threshold(threshold, false_alarms)
    run = Run.open(folder).part(where=where)
    found = run.detection(detectors=detector or None, models=model, arms=arm, tpr=tpr, threshold=limit)
    if group is not None:
        show_group(run, found, group, out_csv=out_csv, as_json=as_json)
    else:
        show_finding(run, "detection", found, details=details, out_csv=out_csv, as_json=as_json)


def show_group(
    run: "Run", found: "DetectionAssessment", group: str, *, out_csv: str | None = None, as_json: bool = False
) -> None:
    """One group: its rows to a file, its curves as JSON, or what is read off them."""
    from advrisk.assess.detection.curves import group_curves
    from advrisk.assess.detection.one_group import group_sections
    from advrisk.cli.lines import show_rows, shown_part
    from advrisk.render.terminal import print_sections

    curves = group_curves(found, group)
    labels = {one.row.label for one in curves}
    record = {"tpr": found.tpr, "level": found.level, "tables": curves}
    shown = shown_part(run, lambda: record, lambda: print_sections(group_sections(found, curves)))
    rows = [row for row in found.rows() if row["row"] in labels]
    show_rows(lambda: rows, found.columns, *shown, out_csv=out_csv, as_json=as_json)
