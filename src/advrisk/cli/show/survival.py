"""`advrisk show survival`: how long models survive, and the options that only this question has."""

from typing import Annotated, Any, Literal

import typer

from advrisk.cli.options import AsJson, Details, OfArms, OfCsv, OfModels, OfNorm, OfWhere, RunFolder
from advrisk.core.errors import StudyError


def survival(
    folder: RunFolder,
    measure: Annotated[
        Literal["forward", "gradient", "seconds", "process-seconds"] | None,
        typer.Option(help="The unit of durations (default: the study's, forward passes)."),
    ] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What explains durations: eps, model, a tag, …; repeat for more."),
    ] = None,
    family: Annotated[
        Literal["auto", "weibull", "lognormal", "loglogistic"] | None,
        typer.Option(help="The law of durations (default: the one that explains unseen samples best)."),
    ] = None,
    until: Annotated[float | None, typer.Option(help="Take means up to this many passes or seconds.")] = None,
    shape_covariate: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What changes the shape of the law; repeat for more.")
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COVARIATE=LEVEL", help="The level to compare others with, as in model=plain; repeat for more."
        ),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(metavar="COVARIATE=SIZE", help="The unit of an effect, as in eps=1/255; repeat for more."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="How far off a law may be and still be quoted (default: 0.02).")
    ] = None,
    level: Annotated[float | None, typer.Option(help="The level of intervals (default: the study's, 0.95).")] = None,
    eps_max: Annotated[float | None, typer.Option(help="Count costs of sizes up to this one (default: all).")] = None,
    broken_factor: Annotated[
        float | None,
        typer.Option(help="Call a model broken if training takes this many times as long as breaking (default: 10)."),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option(metavar="NAME=PRICE", help="A machine and its price per hour, as in one-gpu=2.5.")
    ] = None,
    norm: OfNorm = None,
    arm: OfArms = None,
    model: OfModels = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Show how long models survive, and what breaking them costs.

    Example: advrisk show survival runs/signs --covariate eps --measure gradient
    """
    from advrisk.api import Run
    from advrisk.cli.lines import show_finding

    asked: dict[str, Any] = {"measure": measure, "covariates": covariate, "family": family, "until": until}
    asked |= {"shape_covariates": shape_covariate, "tolerance": tolerance}
    asked |= {"reference": pairs_of("--reference", reference, "model=plain")}
    asked |= {"units": pairs_of("--unit", unit, "eps=1/255")}
    asked |= {"level": level, "eps_max": eps_max, "broken_factor": broken_factor, "hardware": hardware_of(hardware)}
    run = Run.open(folder).part(where=where)
    found = run.survival(norm=norm, models=model, arms=arm, **asked)
    show_finding(run, "survival", found, details=details, out_csv=out_csv, as_json=as_json)


def hardware_of(text: str | None) -> dict[str, Any] | None:
    """A machine and its price, as a study has it."""
    if text is None:
        return None
    name, _, price = text.rpartition("=")
    try:
        if not name.strip():
            raise ValueError
        return {"name": name.strip(), "per_hour": float(price)}
    except ValueError:
        raise StudyError(f"--hardware is NAME=PRICE, as in one-gpu=2.5; found {text!r}") from None


def pairs_of(option: str, given: list[str] | None, example: str) -> dict[str, str] | None:
    """`NAME=VALUE`, each once, as a mapping."""
    if given is None:
        return None
    pairs = [text.partition("=") for text in given]
    for (name, sign, value), text in zip(pairs, given, strict=True):
        if not (name.strip() and sign and value.strip()):
            raise StudyError(f"{option} is NAME=VALUE, as in {example}; found {text!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}
