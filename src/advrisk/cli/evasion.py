"""`advrisk evasion`: from a detector's answers to a curve in a file."""

from typing import Annotated, Literal

import typer

from advrisk.cli.options import AsJson, OfDetector, OfFalseAlarms, OfThreshold, alarm_of
from advrisk.core.errors import StudyError
from advrisk.core.plain import json_text
from advrisk.core.traits import Norm


def evasion(
    source: Annotated[
        str, typer.Argument(help="A .csv or .parquet file with the columns size and undetected, or a run's folder.")
    ],
    out: Annotated[str | None, typer.Option(help="The file to write the curve to.")] = None,
    fit: Annotated[Literal["bayesian", "logistic", "monotone"], typer.Option(help="What to assume.")] = "bayesian",
    norm: Annotated[Norm | None, typer.Option(help="The norm in which sizes are measured.")] = None,
    scale: Annotated[Literal["log", "linear"], typer.Option(help="Bayesian: of the sizes.")] = "log",
    guess: Annotated[float | None, typer.Option(help="Bayesian: rate of false alarms (default: learned).")] = None,
    lapse: Annotated[float | None, typer.Option(help="Bayesian: rate of lapses (default: learned).")] = None,
    forced_choice: Annotated[
        bool, typer.Option("--forced-choice", help="Bayesian: two pictures were shown, and undetected means wrong.")
    ] = False,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    as_json: AsJson = False,
) -> None:
    """Fit an evasion curve to a detector's answers.

    The curve says how likely a perturbation of each size goes undetected.

    Example: advrisk evasion answers.csv --norm linf --out evasion.json
    """
    from advrisk.api.evasion import evasion_sections, fit_evasion
    from advrisk.ledger.sync.remote import local_path, url_of
    from advrisk.render.terminal import Terminal, indented, print_sections

    if out is not None and norm is None and not (url_of(source) or local_path(source).is_dir()):
        raise StudyError("--out needs --norm: a curve whose sizes are in no norm can be used with none")
    found = fit_evasion(
        source,
        detector=alarm_of(detector, threshold, false_alarms),
        fit=fit,
        norm=norm,
        scale=scale,
        guess=guess,
        lapse=lapse,
        forced_choice=forced_choice,
    )
    if out:
        found.write(out)
    if as_json:
        print(json_text(found))
        return
    print_sections(evasion_sections(found))
    use = f"`advrisk select RUN --evasion {out}`, or in a study: `assess: {{damage: {{evasion: {out}}}}}`"
    written = f"{out} written. Use it with {use}." if out else "Nothing was written: name a file with --out."
    indented(Terminal(), written, by=0)
