"""`advrisk show`: how its first word is read, the summary of a run, and what its ledger holds."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from advrisk.cli.groups import SectionedGroup
from advrisk.cli.options import AsJson, OfArms, OfModels, OfWhere, RunFolder, open_part
from advrisk.cli.verbosity import App
from advrisk.core.errors import StudyError
from advrisk.core.names import listed, nearest

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.core.sections import Table

SUMMARY = "summary"
_ROWS = ("arms", "models")  # which follow the findings in the help
_VERBS = ("gate", "compare")  # which show findings, too
_WITH_VALUE = ("--model", "--where")  # options of the summary that the next word belongs to


class FindingGroup(SectionedGroup):
    """One subcommand per finding; without one, the summary."""

    rest: ClassVar[str] = "Findings"

    def known_commands(self) -> Mapping[str, Any]:
        """Those built in, and one for each assessment of a package."""
        before = {name: one for name, one in self.commands.items() if name not in _ROWS}
        return {**before, **self._questions, **self.commands, **self._brought}

    def _is_brought(self, name: str) -> bool:
        """Whether packages bring an assessment of that name; they are loaded only for a word that may be one."""
        return (
            re.fullmatch(r"[a-z0-9-]+", name) is not None and not Path(name).exists() and name in self.known_commands()
        )

    @cached_property
    def _questions(self) -> Mapping[str, Any]:
        """Imported only when needed, as `advrisk --help` is to be quick."""
        from advrisk.cli.show.questions import question_commands

        return question_commands()

    @cached_property
    def _brought(self) -> Mapping[str, Any]:
        from advrisk.cli.show.generated import brought_commands

        return brought_commands()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None; packages are asked only for names that are not built in."""
        own = self.commands.get(cmd_name) or self._questions.get(cmd_name)
        return own or super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `summary` before words that name no finding, and refuse those that try to name one."""
        built_in = {*self.commands, *self._questions, *ctx.help_option_names}
        if args and args[0] not in built_in and not self._is_brought(args[0]):
            if not ctx.resilient_parsing:
                refuse_misplaced(args, self.known_commands())
            args = [SUMMARY, *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows `advrisk show` in its usage line."""
        del ctx
        return ["[FINDING] RUN [OPTIONS]"]

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Findings, and runs: both may come first."""
        found = list(super().shell_complete(ctx, incomplete))
        if incomplete.startswith("-"):
            return found
        run = next(one for one in self.known_commands()[SUMMARY].params if one.name == "folder")
        return found + list(run.shell_complete(ctx, incomplete))


show_app = App(cls=FindingGroup, no_args_is_help=True)


@show_app.callback()
def show() -> None:
    """Show what a run found: its summary, or one finding in full.

    `advrisk show RUN` prints the summary. Each finding has options of its own: `advrisk show survival -h`.

    Example: advrisk show damage runs/signs --evasion evasion.json
    """


@show_app.command()
def summary(folder: RunFolder, model: OfModels = None, where: OfWhere = None, as_json: AsJson = False) -> None:
    """Print the headlines, the decision table and where to read on.

    This is what `advrisk show RUN` does; --json prints every number, as `advrisk report RUN --json` writes it.

    Example: advrisk show summary runs/signs --where class=3
    """
    from advrisk.cli.summary import show_summary

    run = open_part(folder, models=model, where=where)
    show_summary(run, folder, {"--model": model or (), "--where": where or ()}, as_json=as_json)


@show_app.command()
def arms(
    folder: RunFolder, arm: OfArms = None, model: OfModels = None, where: OfWhere = None, as_json: AsJson = False
) -> None:
    """List the arms: how many samples each broke, and at what cost.

    Example: advrisk show arms runs/signs --model plain
    """
    from advrisk.assess.status_sections import arm_table

    run = open_part(folder, models=model, where=where)
    _show_rows(run, run.arms(arms=arm), arm_table, as_json=as_json)


@show_app.command()
def models(folder: RunFolder, model: OfModels = None, as_json: AsJson = False) -> None:
    """List the models: digest, capability and training.

    Example: advrisk show models runs/signs
    """
    from advrisk.assess.status_sections import model_table

    run = open_part(folder, models=model)
    _show_rows(run, run.models(), model_table, as_json=as_json)


def _show_rows(
    run: "Run", rows: Sequence[dict[str, Any]], table: "Callable[[Sequence[dict[str, Any]]], Table]", *, as_json: bool
) -> None:
    """A line for each arm or model of a run."""
    from advrisk.cli.lines import print_part
    from advrisk.core.plain import json_text
    from advrisk.render.terminal import print_sections

    if as_json:
        print(json_text(rows))
        return
    print_part(run)
    print_sections([table(rows)]) if rows else print("no rows")


def refuse_misplaced(words: Sequence[str], known: Mapping[str, Any]) -> None:
    """Raise where a finding stands after its run, or where the first of two words is no finding."""
    bare = [
        word
        for before, word in zip(("", *words), words, strict=False)
        if not word.startswith("-") and before not in _WITH_VALUE
    ]
    named = next((word for word in bare if word in known), None)
    if named is not None and len(bare) > 1:
        raise StudyError(f"name the finding first: {_finding_first(named, words, named)}")
    if len(words) > 1 and list(words[:2]) == bare[:2]:
        raise StudyError(_unknown(words, known))
    if len(bare) == 1 and not Path(bare[0]).exists() and (meant := nearest(bare[0], known)):
        raise StudyError(f"no run and no finding called {bare[0]!r}; did you mean advrisk show {meant} RUN?")
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        owners = [name for name, one in known.items() if any(option in param.opts for param in one.params)]
        if owners and SUMMARY not in owners:
            first = shlex.join(["advrisk", "show", owners[0], *words])
            raise StudyError(f"{option} is an option of {listed(owners)}, not of the summary: {first}")


def _unknown(words: Sequence[str], known: Mapping[str, Any]) -> str:
    """A complaint about the first word, or about the second where only that one resembles a finding."""
    if words[0] in _VERBS:
        return f"{words[0]} is a command of its own: {shlex.join(['advrisk', *words])}"
    if meant := nearest(words[0], known):
        return f"no finding called {words[0]!r}; did you mean {meant}?"
    if meant := nearest(words[1], known):
        first = _finding_first(meant, words, words[1])
        return f"no finding called {words[1]!r}; did you mean {meant}? Name it first: {first}"
    return f"no finding called {words[0]!r}; findings are {', '.join(known)}"


def _finding_first(finding: str, words: Sequence[str], written: str) -> str:
    """The command with its finding, written as such, moved before all other words."""
    others = list(words)
    others.remove(written)
    return shlex.join(["advrisk", "show", finding, *others])
