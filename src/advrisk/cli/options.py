"""Options that several verbs share, and how what is written there is meant."""

from typing import Annotated, Any, Literal

import typer

from advrisk.core.errors import StudyError
from advrisk.core.numbers import parse_number
from advrisk.core.traits import Norm

RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or its URL.")]
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
OfEps = Annotated[list[str] | None, typer.Option("--eps", help="Show robust accuracy at this size; repeat for more.")]
OfModels = Annotated[
    list[str] | None, typer.Option("--model", help="Compare this model only with others named; repeat for more.")
]
OfWhere = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="STRATUM=VALUE", help="Count these samples only, as in class=3,site=a."),
]
OfDetector = Annotated[
    list[str] | None,
    typer.Option("--detector", help="Ask this detector about the attacks themselves. Detection: repeat for more."),
]
OfThreshold = Annotated[float | None, typer.Option("--threshold", help="The score above which it raises an alarm.")]
OfFalseAlarms = Annotated[
    float | None, typer.Option("--false-alarms", help="Alternatively, the false-alarm rate to allow.")
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
OfShape = Annotated[
    list[str] | None,
    typer.Option("--shape-covariate", help="Survival: what changes the shape of the law; repeat for more."),
]
OfReference = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="COVARIATE=LEVEL",
        help="Survival: the level that others are compared with, as in model=plain; repeat for more.",
    ),
]
OfUnit = Annotated[
    list[str] | None,
    typer.Option(
        "--unit", metavar="COVARIATE=SIZE", help="Survival: the unit of an effect, as in eps=1/255; repeat for more."
    ),
]
OfTolerance = Annotated[
    float | None,
    typer.Option("--tolerance", help="Survival: how far off a law may be and still be quoted (default: 0.02)."),
]
OfLevel = Annotated[
    float | None, typer.Option("--level", help="Survival: how sure intervals are (default: the study's, 0.95).")
]
OfEpsMax = Annotated[
    float | None, typer.Option("--eps-max", help="Survival: costs are told of sizes up to this one (default: all).")
]
OfBrokenFactor = Annotated[
    float | None,
    typer.Option(
        "--broken-factor",
        help="Survival: a model is broken if training took this many times as long as breaking (default: 10).",
    ),
]
OfHardware = Annotated[
    str | None,
    typer.Option(
        "--hardware", metavar="NAME=PRICE", help="Survival: a machine, and what an hour of it costs, as in one-gpu=2.5."
    ),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, …, or auto; overrides the study.")]


On = Annotated[Literal["local", "ray"], typer.Option("--on", help="Where cells are carried out.")]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Of a Ray cluster: host:port, ray://host:port or auto (default: RAY_ADDRESS, or one started here).",
    ),
]


OfTarget = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="Stop once this is known: `damage ±0.02`, `broken.MODEL at 8/255 ±2 %`, `decided` (which is least bad), "
        "`gate` (every requirement of the study); repeat for more.",
    ),
]
MaxTime = Annotated[
    str | None,
    typer.Option("--max-time", metavar="DURATION", help="Begin no cell after this time: 90m, 2h, 1h30m, 45s."),
]
MaxMinutes = Annotated[
    float | None, typer.Option("--max-minutes", min=0.0, help="The same limit as a number of minutes.")
]
MaxPasses = Annotated[
    int | None, typer.Option("--max-passes", min=1, help="Begin no cell once so many passes are spent by this command.")
]


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


def sizes_of(written: list[str] | None) -> list[float] | None:
    """Sizes as people write them: 8/255 is one."""
    try:
        return None if written is None else [parse_number(text) for text in written]
    except ValueError as error:
        raise StudyError(f"--eps: {error}") from None
