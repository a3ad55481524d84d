"""The summary of a run as text for a terminal: headlines, the decision table, and the commands that show the rest."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.sections import risk_table
from advrisk.assess.indicators.words import stated_results
from advrisk.cli.damage import print_damage, print_headlines
from advrisk.cli.lines import print_part
from advrisk.cli.show.questions import GATE, question_commands
from advrisk.cli.verbosity import is_quiet
from advrisk.core.errors import RiskError
from advrisk.core.plain import json_text
from advrisk.core.sections import Unanswered
from advrisk.render.terminal import Terminal, indented, print_sections
from advrisk.report.records import headlines
from advrisk.study.registered import traits_of

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.report import Findings

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
        print_sections(map(risk_table, stated_results(indicators) if indicators else ()), console)
    if is_quiet():
        return
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
    answered, built_in = [one.name for one in found.answered], question_commands()
    for name in dict.fromkeys([*(name for name in built_in if name in answered), *answered]):
        command, traits = [name] if name == GATE else ["show", name], traits_of(name)
        yield _line(command, folder, _taken(name, part)), traits.brief or traits.title.lower()
    yield _line(["report"], folder, part), "everything, in one HTML file"


def _taken(name: str, part: Options) -> Options:
    """Those of the options that the command of a question has, and has as many of."""
    if name not in question_commands():
        return {} if name == GATE else part
    taken = {option for one in question_commands()[name].params for option in one.opts}
    if "model" in traits_of(name).accepts.model_fields and len(part["--model"]) > 1:
        taken.remove("--model")
    return {option: values for option, values in part.items() if option in taken}


def _line(command: Sequence[str], folder: str, options: Options) -> str:
    given = (word for option, values in options.items() for value in values for word in (option, value))
    return shlex.join(["advrisk", *command, folder, *given])


def _unanswered(found: "Findings") -> Iterator[tuple[str, str]]:
    """Questions that the study asks and the run does not answer, and why."""
    for name, one in found.answers.items():
        if isinstance(one, Unanswered):
            yield name, str(one)
