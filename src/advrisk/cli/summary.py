"""The summary of a run as text for a terminal: headlines, the decision table, and the commands that show the rest."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import stated_results
from advrisk.assess.protocol import Finding
from advrisk.cli.damage import print_damage, print_headlines, print_risks
from advrisk.cli.lines import print_part
from advrisk.core.errors import RiskError
from advrisk.core.plain import json_text
from advrisk.core.sections import Unanswered
from advrisk.render.terminal import Terminal, indented
from advrisk.report.records import headlines
from advrisk.study.registered import title_of

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.report import Findings

# A question, the command that shows it, and what that prints.
_COMMANDS = (
    ("damage", "show damage", "also with a detector, or a cost"),
    ("convergence", "show convergence", "how the numbers settle"),
    ("attacks", "show attacks", "which attacks earn their passes"),
    ("detection", "show detection", "detectors against all attacks"),
    ("indicators", "show indicators", "risk in each scenario"),
    ("failures", "show failures", "the inputs that fail"),
    ("survival", "show survival", "how long each model survives"),
    ("search", "show search", "settings that searches tried"),
    ("certificate", "show certificate", "what is certified"),
    ("gate", "gate", "each requirement"),
)
# Which of the options of a part a command has; those not listed have all.
_TAKEN = {"show failures": ("--where",), "show search": ("--model",), "gate": ()}
Options = Mapping[str, Sequence[str]]  # what restricts a summary to a part of its run, by option


def show_summary(run: "Run", folder: str, part: Options, *, as_json: bool) -> None:
    """`advrisk show RUN`."""
    if as_json:
        from advrisk.api.reporting import run_record

        print(json_text(run_record(run)))
        return
    found = run.findings()
    if not found.answered:
        raise RiskError(found.why_not("damage"))
    print_summary(run, found, folder, part)


def print_summary(run: "Run", found: "Findings", folder: str, part: Options) -> None:
    """What a run says for those who read no further, and where to read on."""
    console, said = Terminal(), headlines(found)
    if damage := found.result(DamageAssessment):
        print_damage(damage, said)
    else:
        print_part(run)
        print_headlines(console, said)
        indicators = found.result(IndicatorAssessment)
        for result in stated_results(indicators) if indicators else ():
            print_risks(console, result)
    for question, why in _unanswered(found):
        if why.rstrip(".") not in " ".join(said):
            indented(console, f"· No answer on {question}: {why}", by=0)
    _print_commands(console, dict(_commands(found, folder, part)))


def _print_commands(console: Console, commands: Mapping[str, str]) -> None:
    """Commands to be copied, so never wrapped; what they print beside them, or above where that is too wide."""
    widest = max(map(len, commands))
    lines = [f"  {command:<{widest}}  # {what}" for command, what in commands.items()]
    if max(map(len, lines)) > console.width:
        lines = [f"  # {what}\n  {command}" for command, what in commands.items()]
    print("\n".join(["\nRead on:", *lines]))


def _commands(found: "Findings", folder: str, part: Options) -> Iterator[tuple[str, str]]:
    """Each command with the options that restrict this summary, and what it prints."""
    there = {one.name for one in found.answered}
    built_in = (row for row in _COMMANDS if row[0] in there)
    answered = (name for name, one in found.brought.items() if isinstance(one, Finding))
    registered = [(name, f"show {name}", title_of(name).lower()) for name in answered]
    for _, command, what in (*built_in, *registered, ("", "report", "everything, in one HTML file")):
        given = [(option, value) for option in _TAKEN.get(command, tuple(part)) for value in part[option]]
        words = ["advrisk", *command.split(), folder, *(word for pair in given for word in pair)]
        yield shlex.join(words), what


def _unanswered(found: "Findings") -> Iterator[tuple[str, str]]:
    """Questions that the study asks and the run does not answer, and why."""
    for name, one in found.answers.items():
        if isinstance(one, Unanswered):
            yield name, str(one)
