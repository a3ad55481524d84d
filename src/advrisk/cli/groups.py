"""Groups of commands whose help is divided into sections."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typer import BadParameter
from typer.core import TyperGroup

HELP = {"help_option_names": ["-h", "--help"]}


class SectionedGroup(TyperGroup):
    """A group that lists its commands by section, in the order of `sections`; all others follow under `rest`."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}
    rest: ClassVar[str] = "Commands"

    def known_commands(self) -> Mapping[str, Any]:
        """Every command by name: help, completion and invocation all look names up here."""
        return self.commands

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        del ctx
        return self.known_commands().get(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, section by section."""
        del ctx
        return [name for _, names in self._by_section() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of commands for each section, all help lines in one column."""
        widest = max(map(len, self.known_commands()), default=0)
        limit = formatter.width - 6 - widest
        for title, names in self._by_section():
            commands = {name: self.get_command(ctx, name) for name in names}
            rows = [(f"{name:<{widest}}", one.get_short_help_str(limit)) for name, one in commands.items()]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a complaint about an option's value begins with what was found."""
        try:
            return super().invoke(ctx)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic's, which typer passes on
            raise

    def _by_section(self) -> Iterator[tuple[str, list[str]]]:
        known = self.known_commands()
        listed = {name for names in self.sections.values() for name in names}
        for title, names in self.sections.items():
            yield title, [name for name in names if name in known]
        yield self.rest, [name for name in known if name not in listed]
