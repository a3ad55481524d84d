"""How much a command prints beside its answer: `--quiet` and `--verbose`, which every command has.

Quiet: the answer, without notes and hints, and errors. Verbose: also each finished cell, and how long each step took.
"""

import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand

from advrisk.core.errors import StudyError

Level = Literal["quiet", "usual", "verbose"]

Function = TypeVar("Function", bound=Callable[..., Any])

_level: Level = "usual"


def is_quiet() -> bool:
    """Whether only the answer and errors are printed."""
    return _level == "quiet"


def is_verbose() -> bool:
    """Whether cells and timings are printed, too."""
    return _level == "verbose"


def note(text: str) -> None:
    """Write a remark beside the answer to standard error, unless it is to be quiet."""
    if not is_quiet():
        print(text, file=sys.stderr, flush=True)


def detail(text: str) -> None:
    """Write what only `--verbose` shows to standard error."""
    if is_verbose():
        print(text, file=sys.stderr, flush=True)


class Steps:
    """Prints how long each step took, under `--verbose`."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def done(self, what: str) -> None:
        """A step has ended, and the next one begins."""
        now = time.monotonic()
        detail(f"{what} in {now - self._began:.1f} s")
        self._began = now


class App(typer.Typer):
    """Commands that can be quiet or verbose."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a command."""
        return super().command(name, **({"cls": Command} | settings))


class Command(TyperCommand):
    """A command that can be quiet or verbose."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params += _switches()

    def invoke(self, ctx: Any) -> Any:
        """Run the command at the level that its switches ask for."""
        quiet, verbose = ctx.params.pop("quiet"), ctx.params.pop("verbose")
        if quiet and verbose:
            raise StudyError("--quiet and --verbose ask for opposite things; give one")
        _set_level("quiet" if quiet else "verbose" if verbose else "usual")
        steps = Steps()
        try:
            return super().invoke(ctx)
        finally:
            steps.done("finished")
            _set_level("usual")


def _switches() -> list[Any]:
    """The two options, as typer makes them from a function."""

    def switches(
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer and errors.")] = False,
        verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print cells and timings, too.")] = False,
    ) -> None:
        """Carry the options."""

    app = typer.Typer(add_completion=False)
    app.command()(switches)
    return typer.main.get_command(app).params


def _set_level(level: Level) -> None:
    global _level
    _level = level
    if level == "quiet" or "advrisk.render.terminal" in sys.modules:
        from advrisk.render.terminal import Terminal

        Terminal.notes = level != "quiet"
