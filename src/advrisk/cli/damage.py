"""Which model the evidence names, and the damage and risks that this rests on, for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.assess.damage.headline import headline
from advrisk.assess.damage.sections import sections
from advrisk.assess.indicators.sections import risk_table
from advrisk.cli.lines import show_result
from advrisk.cli.options import Output
from advrisk.core.plain import json_text
from advrisk.core.sections import Headline
from advrisk.render.terminal import Terminal, indented, print_sections

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.api.selection import Selection
    from advrisk.assess.damage.assessment import DamageAssessment


def show_damage(run: "Run", output: Output) -> None:
    """`advrisk show damage RUN`: damage, below what the evidence names."""
    chosen = run.select()
    about = {"filter": run.view.as_dict()} if run.view else {}
    if chosen.damage is None and chosen.scenarios and output.out_csv is None:  # corruptions alone
        if output.as_json:
            print(json_text(chosen.as_dict() | about))
            return
        print_selection(chosen, details=output.details)
        indented(Terminal(), "· Damage needs attacks with a norm; the study's own question is answered above.", by=0)
        return
    found = chosen.damage or run.damage()  # which says why there is none
    show_result(
        found,
        lambda: chosen.as_dict() | about,
        lambda: print_damage(found, chosen.headlines, details=output.details),
        output,
    )


def print_damage(found: "DamageAssessment", said: Sequence[str] = (), *, details: bool = False) -> None:
    """The headline (or what is said instead), the models at a glance, and what to make of it."""
    console = Terminal()
    print_headlines(console, said or [headline(found)])
    _print_rest(console, found, details=details)


def print_selection(found: "Selection", *, details: bool = False) -> None:
    """What the evidence names, and the risks and the damage that it rests on."""
    console = Terminal()
    print_headlines(console, found.headlines)
    print_sections(map(risk_table, found.scenarios), console)
    if found.damage is not None:
        _print_rest(console, found.damage, details=details)


def _print_rest(console: Console, found: "DamageAssessment", *, details: bool) -> None:
    """Damage without its headline."""
    print_sections((one for one in sections(found) if not isinstance(one, Headline)), console, details=details)


def print_headlines(console: Console, said: Sequence[str]) -> None:
    """The answer first, in bold; then what else was asked."""
    for place, sentence in enumerate(said):
        indented(console, sentence, by=0, style="bold" if place == 0 else "")
    console.print()
