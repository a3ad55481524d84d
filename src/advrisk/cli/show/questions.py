"""`advrisk show NAME` of the questions that advrisk answers itself.

Their options are the fields of their specs. What is here differs from that: options that say in another way what a
field holds, or that are no field; and answers that are printed in another way than most.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advrisk.cli.options import (
    OF_OUTPUT,
    OF_PART,
    OfFalseAlarms,
    OfThreshold,
    Output,
    alarm_threshold,
    keyword,
    open_part,
    with_options,
)
from advrisk.cli.show.generated import field_options, made_command, read_options
from advrisk.cli.verbosity import note
from advrisk.core.errors import StudyError
from advrisk.study import AssessmentTraits, assessments

if TYPE_CHECKING:
    from advrisk.api import Run

GATE = "gate"  # which has a verb of its own
Given = dict[str, Any]  # argument -> value, of options that were given


def show_answer(run: "Run", name: str, given: Given, output: Output) -> None:
    """Ask, and print the answer as most are."""
    from advrisk.cli.lines import show_finding

    show_finding(run, name, run.context.result(name, **given), output)


@dataclass(frozen=True)
class Command:
    """How the command of a question differs from its spec."""

    example: str = ""  # what follows `advrisk show NAME runs/signs`
    more: str = ""  # of its help
    part: Sequence[str] = ("where",)  # options of a part of a run, which stand for the fields of their names
    without: Iterable[str] = ()  # fields that are not offered
    by_hand: Mapping[str, Any] = field(default_factory=dict)  # options in place of fields, or that are none
    first: Sequence[str] = ()  # in the help; then the others as in the spec
    show: Callable[["Run", str, Given, Output], None] = show_answer  # handed what was given, `by_hand` as typed

    def made(self, name: str, traits: AssessmentTraits) -> Any:
        """The command itself."""

        def call(folder: str, *, details: bool, out_csv: str | None, as_json: bool, **given: Any) -> None:
            run = open_part(folder, **{option: given.pop(option) for option in self.part})
            typed = {option: given.pop(option) for option in self.by_hand}
            self.show(run, name, typed | read_options(traits, given), Output(details, out_csv, as_json))

        left_out = {*self.part, *self.without}
        own = {one.name: one for one in field_options(traits) if one.name not in left_out}
        own |= {option: keyword(option, written) for option, written in self.by_hand.items()}
        ordered = [own.pop(option) for option in self.first] + list(own.values())
        shared = {**{option: OF_PART[option] for option in self.part}, **OF_OUTPUT}
        function = with_options(call, [*ordered, *(keyword(*one) for one in shared.items())])
        return made_command(name, function, traits.help or f"{traits.title}.", self.more, self.example)


def _show_damage(run: "Run", name: str, given: Given, output: Output) -> None:
    """Below what the evidence names."""
    del name, given
    from advrisk.cli.damage import show_damage

    show_damage(run, output)


OfGroup = Annotated[
    str | None, typer.Option("--group", metavar="GROUP", help="Show the ROC of one group, as in linf-8/255.")
]


def _show_detection(run: "Run", name: str, given: Given, output: Output) -> None:
    """All groups, or one by itself: its rows to a file, its curves as JSON, or what is read off them."""
    given["threshold"] = alarm_threshold(given["threshold"], given.pop("false_alarms"))
    group = given.pop("group")
    if group is None:
        show_answer(run, name, given, output)
        return
    from advrisk.assess.detection.curves import group_curves
    from advrisk.assess.detection.one_group import group_sections
    from advrisk.cli.lines import show_rows, shown_part
    from advrisk.render.terminal import print_sections

    found = run.detection(**given)
    curves = group_curves(found, group)
    labels = {one.row.label for one in curves}
    record = {"tpr": found.tpr, "level": found.level, "tables": curves}
    shown = shown_part(run, lambda: record, lambda: print_sections(group_sections(found, curves)))
    show_rows((row for row in found.rows() if row["row"] in labels), found.columns, *shown, output)


OfScenarios = Annotated[
    Path | None,
    typer.Option("--scenarios", metavar="FILE", help="A YAML file with other scenarios than the study's."),
]
OfLosses = Annotated[
    list[str] | None, typer.Option("--loss", metavar="LOSS", help="Show this loss only; repeat for more.")
]
OfChanges = Annotated[
    list[str] | None,
    typer.Option("--what-if", metavar="BRANCH=WEIGHT", help="Another weight, as in wet.rain=0.9; repeat for more."),
]


def _show_indicators(run: "Run", name: str, given: Given, output: Output) -> None:
    """Every scenario under every loss; with details where models are named."""
    given |= {"losses": run.named_losses(given["losses"]), "what_if": _changed_weights(given["what_if"])}
    show_answer(run, name, given, replace(output, details=output.details or "models" in given))


def _changed_weights(written: Sequence[str] | None) -> dict[str, str]:
    """`wet.rain=0.9` as path and weight."""
    changes: dict[str, str] = {}
    for text in written or ():
        path, sign, weight = text.rpartition("=")
        if not sign or not path.strip() or not weight.strip():
            raise StudyError(f"--what-if takes a branch and its weight, as in wet.rain=0.9; found {text!r}")
        if path.strip() in changes:
            raise StudyError(
                f"--what-if gives {path.strip()} two weights, {changes[path.strip()]} and {weight.strip()}"
            )
        changes[path.strip()] = weight.strip()
    return changes


_OF_ONE = ("scenario", "loss", "model")  # each at most once, and refused where it is given again
OfScenario = Annotated[
    list[str] | None,
    typer.Option("--scenario", metavar="SCENARIO", help="The scenario (default: the study's first)."),
]
OfLoss = Annotated[
    list[str] | None, typer.Option("--loss", metavar="LOSS", help="The loss (default: the study's first).")
]
OfModel = Annotated[list[str] | None, typer.Option("--model", metavar="MODEL", help="Show this model only.")]
OfSheet = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write the inputs as one picture, a .png file.")
]


def _show_failures(run: "Run", name: str, given: Given, output: Output) -> None:
    """The worst branches, and the samples that fail there; and these as a contact sheet."""
    from advrisk.assess.failures.contact_sheet import write_contact_sheet
    from advrisk.cli.lines import show_finding
    from advrisk.ledger.sync.files import output_file

    out = given.pop("out")
    found = run.failures(**given | {option: _only(option, given[option]) for option in _OF_ONE})
    if out is not None:
        with output_file(out) as path:
            n_drawn = write_contact_sheet(run.ledger.storage, found, path)
        note(f"{n_drawn} inputs drawn in {out}")
    show_finding(run, name, found, output)


def _only(option: str, given: list[str] | None) -> str | None:
    if given is not None and len(given) > 1:
        raise StudyError(f"--{option}: failures are shown of one at a time, found {', '.join(given)}")
    return given[0] if given else None


OfHardware = Annotated[
    str | None, typer.Option("--hardware", metavar="NAME=PRICE", help="A machine and its price per hour: one-gpu=2.5.")
]


def _show_survival(run: "Run", name: str, given: Given, output: Output) -> None:
    show_answer(run, name, given | {"hardware": _hardware(given["hardware"])}, output)


def _hardware(text: str | None) -> dict[str, Any] | None:
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


# In the order of the help; a question that is not here has the options of its spec, and follows.
_COMMANDS: Mapping[str, Command] = {
    "damage": Command(
        "--evasion evasion.json --cost 25000", part=tuple(OF_PART), without=("level", "resamples"), show=_show_damage
    ),
    "convergence": Command(
        "--evasion evasion.json",
        part=[one for one in OF_PART if one not in ("cost", "answers")],
        without=("points", "resamples"),
    ),
    "attacks": Command("--norm linf", part=("models", "where", "norm", "arms")),
    "detection": Command(
        "--group linf-8/255",
        without=("level", "resamples"),
        by_hand={"threshold": OfThreshold, "false_alarms": OfFalseAlarms, "group": OfGroup},  # one of two
        first=("detectors", "threshold", "false_alarms", "group", "tpr"),
        show=_show_detection,
    ),
    "indicators": Command(
        "--what-if wet=0.5",
        without=("level",),
        by_hand={"scenarios": OfScenarios, "losses": OfLosses, "what_if": OfChanges},  # a file, and names of the study
        show=_show_indicators,
    ),
    "failures": Command(
        "--model plain --out sheet.png",
        without=("every",),
        by_hand={"scenario": OfScenario, "loss": OfLoss, "model": OfModel, "out": OfSheet},
        first=_OF_ONE,
        show=_show_failures,
    ),
    "survival": Command(
        "--covariate eps --measure gradient",
        by_hand={"hardware": OfHardware},  # a mapping of two keys in one word
        show=_show_survival,
    ),
    "search": Command("--model plain", part=()),
    "certificate": Command(
        "--alpha 0.1 --zeta 0.05",
        "`advrisk certify RUN` writes the same as documents.",
        part=(),
        without=("population", "search_guarantee"),  # settled before the samples to calibrate are looked at
    ),
}


@cache
def question_commands() -> Mapping[str, Any]:
    """A command for each question that is built in, by its name."""
    built_in = assessments.built_in
    names = dict.fromkeys([*_COMMANDS, *built_in])
    return {name: _COMMANDS.get(name, Command()).made(name, built_in[name]) for name in names if name != GATE}
