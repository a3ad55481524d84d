"""`advrisk show` and `advrisk select`: which finding is asked for, and with what."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from advrisk.cli.certify import OfAlpha, OfZeta
from advrisk.cli.options import (
    AsJson,
    OfAnswers,
    OfArms,
    OfBrokenFactor,
    OfCost,
    OfCovariates,
    OfDetector,
    OfEps,
    OfEpsMax,
    OfEvasion,
    OfFalseAlarms,
    OfFamily,
    OfHardware,
    OfLevel,
    OfMeasure,
    OfModels,
    OfNorm,
    OfReference,
    OfShape,
    OfThreshold,
    OfTolerance,
    OfUnit,
    OfUntil,
    OfWhere,
    RunFolder,
    alarm_of,
    alarm_threshold,
    hardware_of,
    pairs_of,
    sizes_of,
)
from advrisk.core.errors import StudyError

Finding = Literal[
    "damage",
    "convergence",
    "attacks",
    "detection",
    "indicators",
    "survival",
    "failures",
    "search",
    "certificate",
    "arms",
    "models",
]

_ROWS = ("arms", "models")  # of the ledger
_DAMAGE = ("damage", "convergence", "attacks")
# What `advrisk show` can show, for each option that means nothing elsewhere.
_USED_BY = {
    **dict.fromkeys(("--eps", "--evasion", "--cost", "--answers"), (*_DAMAGE, *_ROWS)),
    "--norm": (*_DAMAGE, "survival", *_ROWS),
    **dict.fromkeys(("--detector", "--threshold", "--false-alarms"), (*_DAMAGE, "detection", *_ROWS)),
    "--arm": tuple(one for one in get_args(Finding) if one not in ("failures", "search")),
    "--where": tuple(one for one in get_args(Finding) if one not in ("search", "certificate", "models")),
    **dict.fromkeys(("--groups", "--group", "--tpr"), ("detection",)),
    "--csv": tuple(one for one in get_args(Finding) if one not in _ROWS),
    **dict.fromkeys(("--measure", "--covariate", "--family", "--until", "--level"), ("survival",)),
    **dict.fromkeys(("--eps-max", "--broken-factor", "--hardware", "--shape-covariate"), ("survival",)),
    **dict.fromkeys(("--reference", "--unit", "--tolerance"), ("survival",)),
    **dict.fromkeys(("--alpha", "--zeta"), ("certificate",)),
    **dict.fromkeys(("--scenario", "--loss"), ("indicators", "failures")),
    **dict.fromkeys(("--scenarios", "--what-if"), ("indicators",)),
    **dict.fromkeys(("--samples", "--out"), ("failures",)),
}


def refuse_unused(what: str, context: typer.Context) -> None:
    """Options of `advrisk show` that were given and mean nothing for what is shown."""
    given = [param for param in context.command.params if _is_given(context, param.name or "")]
    names = [param.opts[0] for param in given if param.opts[0] in _USED_BY]
    if unused := [name for name in names if what not in _USED_BY[name]]:
        raise StudyError(f"`advrisk show RUN {what}` has no use for {', '.join(unused)}; leave that out")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def show(
    context: typer.Context,
    folder: RunFolder,
    what: Annotated[Finding, typer.Argument(help="What to show.")] = "damage",
    norm: OfNorm = None,
    arm: OfArms = None,
    eps: OfEps = None,
    evasion: OfEvasion = None,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    cost: OfCost = None,
    answers: OfAnswers = None,
    model: OfModels = None,
    where: OfWhere = None,
    groups: Annotated[bool, typer.Option("--groups", help="Detection: every norm, size and objective.")] = False,
    group: Annotated[
        str | None, typer.Option("--group", help="Detection: the ROC of one group, as in linf-8/255.")
    ] = None,
    tpr: Annotated[
        float | None,
        typer.Option("--tpr", help="Detection: the share of attacks to detect (default: the study's, 0.95)."),
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Indicators, failures: this scenario only; repeat for more.")
    ] = None,
    scenarios: Annotated[
        Path | None, typer.Option(help="Indicators: a YAML file with other scenarios than the study's.")
    ] = None,
    loss: Annotated[list[str] | None, typer.Option(help="Indicators, failures: this loss; repeat for more.")] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", help="Indicators: another weight, as in wet.rain=0.9; repeat for more."),
    ] = None,
    alpha: OfAlpha = None,
    zeta: OfZeta = None,
    out_csv: Annotated[str | None, typer.Option("--csv", help="Write every entry to this file.")] = None,
    measure: OfMeasure = None,
    covariate: OfCovariates = None,
    family: OfFamily = None,
    until: OfUntil = None,
    shape_covariate: OfShape = None,
    reference: OfReference = None,
    unit: OfUnit = None,
    tolerance: OfTolerance = None,
    level: OfLevel = None,
    eps_max: OfEpsMax = None,
    broken_factor: OfBrokenFactor = None,
    hardware: OfHardware = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=1, help="Failures: so many samples of each branch (default: 12).")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", help="Failures: write the inputs as one picture, a .png file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run found.

    Example: advrisk show runs/signs convergence --evasion evasion.json
    """
    from advrisk.api import Run
    from advrisk.cli.certificates import show_certificates
    from advrisk.cli.detection import show_detection
    from advrisk.cli.failures import show_failures
    from advrisk.cli.findings import show_finding
    from advrisk.cli.indicators import show_indicators
    from advrisk.cli.search import show_searches
    from advrisk.cli.survival import show_survival

    refuse_unused(what, context)
    opened = Run.open(folder).part(where=where)
    if what == "search":
        show_searches(opened, model, out_csv=out_csv, as_json=as_json)
        return
    if what == "certificate":
        show_certificates(opened, alpha, zeta, model, arm, out_csv=out_csv, as_json=as_json)
        return
    if what == "survival":
        laws: dict[str, Any] = {"measure": measure, "covariates": covariate, "family": family, "until": until}
        laws |= {"shape_covariates": shape_covariate, "tolerance": tolerance}
        laws |= {"reference": pairs_of("--reference", reference, "model=plain")}
        laws |= {"units": pairs_of("--unit", unit, "eps=1/255")}
        laws |= {"level": level, "eps_max": eps_max, "broken_factor": broken_factor, "hardware": hardware_of(hardware)}
        show_survival(opened, norm=norm, models=model, arms=arm, out_csv=out_csv, as_json=as_json, **laws)
        return
    if what == "failures":
        show_failures(opened, scenario, loss, model, samples, out=out, out_csv=out_csv, as_json=as_json)
        return
    if what == "indicators":
        show_indicators(opened, scenarios, scenario, loss, model, arm, what_if, out_csv=out_csv, as_json=as_json)
        return
    if what == "detection":
        limit = alarm_threshold(threshold, false_alarms)
        asked_of: dict[str, Any] = {"groups": groups, "group": group, "out_csv": out_csv, "as_json": as_json}
        show_detection(opened, detector, model, arm, limit, tpr, **asked_of)
        return
    asked: dict[str, Any] = {"norm": norm, "arms": arm, "thresholds": sizes_of(eps), "evasion": evasion}
    asked |= {"detector": alarm_of(detector, threshold, false_alarms)}
    show_finding(opened.part(models=model), what, asked, cost=cost, answers=answers, out_csv=out_csv, as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Name the least bad model; exit code 1 if it fails a requirement, 4 if undecided.

    A study's scenarios decide where it states some; --evasion, --detector or --cost select by damage instead.

    Example: advrisk select runs/signs --evasion evasion.json --cost 25000
    """
    from advrisk.api import Run
    from advrisk.cli.damage import print_selection
    from advrisk.core.plain import json_text

    asked: dict[str, Any] = {"norm": norm, "arms": arm, "thresholds": sizes_of(eps), "evasion": evasion}
    asked |= {"detector": alarm_of(detector, threshold, false_alarms), "cost": cost, "answers": answers}
    part = Run.open(folder).part(models=model, where=where, **asked)
    found = part.select(scenario=scenario, loss=loss)
    print(json_text(found.as_dict() | {"filter": part.view.as_dict()})) if as_json else print_selection(found)
    raise typer.Exit(found.exit_code)
