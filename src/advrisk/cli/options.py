"""Options that several verbs share, and what their values mean."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from advrisk.cli.completion import run_folders
from advrisk.core.errors import StudyError
from advrisk.core.numbers import parse_number, parse_rate
from advrisk.core.traits import Norm

if TYPE_CHECKING:
    from advrisk.api import Run

RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="The folder of a run, or its URL.", autocompletion=run_folders)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Workers = Annotated[int | None, typer.Option(min=1, max=1024, help="Worker processes (default: one per core).")]
OfSigner = Annotated[
    str | None, typer.Option("--signer", metavar="NAME", help="Your name, beside the key and signed with the rest.")
]
OfNorm = Annotated[Norm | None, typer.Option("--norm", help="The norm in which distances count.")]
OfArms = Annotated[
    list[str] | None, typer.Option("--arm", metavar="ARM", help="Count this arm only; * is allowed; repeat for more.")
]
OfEvasion = Annotated[
    str | None,
    typer.Option(
        "--evasion",
        metavar="CURVE",
        help="A file with an evasion curve, a size above which everything is detected, or `average`: the compared "
        "models stand in for a detector.",
    ),
]
OfEps = Annotated[
    list[str] | None, typer.Option("--eps", metavar="SIZE", help="Show robust accuracy at this size; repeat for more.")
]
OfModels = Annotated[
    list[str] | None, typer.Option("--model", metavar="MODEL", help="Count this model only; repeat for more.")
]
OfWhere = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="STRATUM=VALUE", help="Count these samples only, as in class=3,site=a."),
]
OfDetector = Annotated[
    list[str] | None,
    typer.Option("--detector", metavar="DETECTOR", help="Ask this detector about the attacks themselves."),
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
Details = Annotated[bool, typer.Option("--details", help="Show every table and column, and how to read them.")]
OfCsv = Annotated[str | None, typer.Option("--csv", metavar="FILE", help="Write every entry to this file.")]
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


@dataclass(frozen=True)
class Output:
    """How an answer is printed: with every detail, as JSON, and with its rows in a file."""

    details: bool = False
    out_csv: str | None = None
    as_json: bool = False


OF_OUTPUT: Mapping[str, Any] = {"details": Details, "out_csv": OfCsv, "as_json": AsJson}


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


def rate_of(option: str, written: str | None) -> float | None:
    """A rate as people write it: 0.1, 1/10 or 10 %."""
    try:
        return None if written is None else parse_rate(written)
    except ValueError as error:
        raise StudyError(f"{option}: {error}") from None


# Options that restrict a run to a part of it, and ask for damage in another way than its study does.
OF_PART: Mapping[str, Any] = {
    "models": OfModels,
    "where": OfWhere,
    "norm": OfNorm,
    "arms": OfArms,
    "thresholds": OfEps,
    "evasion": OfEvasion,
    "detector": OfDetector,
    "threshold": OfThreshold,
    "false_alarms": OfFalseAlarms,
    "cost": OfCost,
    "answers": OfAnswers,
}


def of_part(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function whose first argument is a run: it gets the options of a part, and that part.

    The other arguments stay options of their own.
    """

    @wraps(function)
    def command(folder: str, **given: Any) -> None:
        asked = {name: given.pop(name) for name in OF_PART}
        function(open_part(folder, **asked), **given)

    own = list(inspect.signature(function).parameters.values())[1:]
    return with_options(command, [*(keyword(*one) for one in OF_PART.items()), *own])


def with_options(command: Callable[..., None], options: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """The command with the signature that typer reads: a run, then these options."""
    run = inspect.Parameter("folder", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunFolder)
    listed = [run, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options)]
    command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in listed}
    return command


def keyword(name: str, option: Any) -> inspect.Parameter:
    """An option that need not be given, under the name of the argument that it becomes."""
    default = False if option in (AsJson, Details) else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=option, default=default)


def open_part(
    folder: str,
    *,
    models: list[str] | None = None,
    where: list[str] | None = None,
    thresholds: list[str] | None = None,
    detector: list[str] | None = None,
    threshold: float | None = None,
    false_alarms: float | None = None,
    **asked: Any,
) -> "Run":
    """A run, or that part of it, asked with what options say."""
    from advrisk.api import Run

    asked |= {"thresholds": sizes_of(thresholds), "detector": alarm_of(detector, threshold, false_alarms)}
    return Run.open(folder).part(where=where).part(models=models).part(**asked)
