"""Options that several verbs share, and how what is written there is meant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from advrisk.core.errors import StudyError
from advrisk.core.numbers import parse_number
from advrisk.core.traits import Norm

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Workers = Annotated[int | None, typer.Option(min=1, max=1024, help="Worker processes (default: one per core).")]
OfNorm = Annotated[Norm | None, typer.Option("--norm", help="The norm in which distances count.")]
OfArms = Annotated[list[str] | None, typer.Option("--arm", help="Count this arm only; * is allowed; repeat for more.")]
OfEvasion = Annotated[
    str | None,
    typer.Option(
        "--evasion",
        help="A file with an evasion curve, a size above which everything is detected, or `average`: the compared "
        "models stand in for a detector.",
    ),
]
OfEps = Annotated[
    list[str] | None, typer.Option("--eps", help="Show the share broken within this size; repeat for more.")
]
OfDetector = Annotated[
    list[str] | None,
    typer.Option("--detector", help="Ask this detector about the attacks themselves. Detection: repeat for more."),
]
OfThreshold = Annotated[float | None, typer.Option("--threshold", help="The score above which it raises an alarm.")]
OfFalseAlarms = Annotated[
    float | None, typer.Option("--false-alarms", help="Or the share of clean inputs at which it may.")
]
OfCost = Annotated[float | None, typer.Option("--cost", help="What one undetected success costs, in any unit.")]
OfAnswers = Annotated[
    str | None,
    typer.Option("--answers", metavar="URL", help="Where people's answers are kept, if not in the run's folder."),
]
OfMeasure = Annotated[
    Literal["forward", "gradient", "seconds", "process-seconds"] | None,
    typer.Option("--measure", help="Survival: what durations are counted in (default: the study's, forward passes)."),
]
OfCovariates = Annotated[
    list[str] | None,
    typer.Option("--covariate", help="Survival: what explains durations: eps, model, a tag, …; repeat for more."),
]
OfFamily = Annotated[
    Literal["auto", "weibull", "lognormal", "loglogistic"] | None,
    typer.Option(
        "--family", help="Survival: the law of durations (default: the one that explains unseen samples best)."
    ),
]
OfUntil = Annotated[
    float | None, typer.Option("--until", help="Survival: means are up to this many passes or seconds.")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, …, or auto; overrides the study.")]


def alarm_of(detectors: list[str] | None, threshold: float | None, false_alarms: float | None) -> dict[str, Any] | None:
    """A detector and when it raises an alarm, as a study has it."""
    if len(detectors or ()) > 1:
        raise StudyError(
            f"damage is told with one detector at a time, found --detector {' and '.join(detectors or ())}"
        )
    detector = detectors[0] if detectors else None
    if detector is None:
        if threshold is not None or false_alarms is not None:
            raise StudyError("--threshold and --false-alarms say when a detector raises an alarm: add --detector NAME")
        return None
    if (threshold is None) == (false_alarms is None):
        found = "neither" if threshold is None else "both"
        raise StudyError(
            f"--detector needs either --threshold, a score, or --false-alarms, a share of clean inputs; found {found}"
        )
    return {"name": detector, "threshold": threshold, "false_alarms": false_alarms}


def alarm_threshold(threshold: float | None, false_alarms: float | None) -> float | dict[str, float] | None:
    """Where alarms begin, for all detectors that are shown; None where nothing was said."""
    if threshold is not None and false_alarms is not None:
        raise StudyError("give either --threshold, a score, or --false-alarms, a share of clean inputs; found both")
    return threshold if false_alarms is None else {"false_alarms": false_alarms}


# What `advrisk show` can show, for each option that means nothing elsewhere.
_USED_BY = {
    **dict.fromkeys(
        ("--eps", "--evasion", "--cost", "--answers"),
        ("damage", "convergence", "attacks", "arms", "models"),
    ),
    "--norm": ("damage", "convergence", "attacks", "survival", "arms", "models"),
    **dict.fromkeys(
        ("--detector", "--threshold", "--false-alarms"),
        ("damage", "convergence", "attacks", "detection", "arms", "models"),
    ),
    "--arm": ("damage", "convergence", "attacks", "detection", "indicators", "survival", "arms", "models"),
    "--model": ("detection", "indicators", "survival", "failures"),
    **dict.fromkeys(("--groups", "--tpr"), ("detection",)),
    "--csv": ("detection", "indicators", "survival"),
    **dict.fromkeys(("--measure", "--covariate", "--family", "--until"), ("survival",)),
    **dict.fromkeys(("--scenario", "--loss"), ("indicators", "failures")),
    **dict.fromkeys(("--scenarios", "--what-if"), ("indicators",)),
    **dict.fromkeys(("--samples", "--out"), ("failures",)),
}


def refuse_unused(what: str, given: Mapping[str, object | None]) -> None:
    """Options of `advrisk show` that mean nothing for what is shown."""
    if unused := [name for name, value in given.items() if value is not None and what not in _USED_BY[name]]:
        raise StudyError(f"`advrisk show RUN {what}` has no use for {', '.join(unused)}; leave that out")


def sizes_of(written: list[str] | None) -> list[float] | None:
    """Sizes as people write them: 8/255 is one."""
    try:
        return None if written is None else [parse_number(text) for text in written]
    except ValueError as error:
        raise StudyError(f"--eps: {error}") from None
