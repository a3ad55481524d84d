"""Which model the evidence names and the damage that this rests on, and a fitted evasion curve, for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.assess.damage.answers import shape_sentence, shape_warning
from advrisk.assess.damage.headline import headline
from advrisk.assess.damage.sections import sections
from advrisk.assess.indicators.words import loss_interval, short_verdict
from advrisk.core.names import counted
from advrisk.core.sections import Column, Headline, Table
from advrisk.render.terminal import Terminal, indented, print_sections

if TYPE_CHECKING:
    from advrisk.api.evasion import FittedEvasion
    from advrisk.api.selection import Selection
    from advrisk.assess.damage.assessment import DamageAssessment
    from advrisk.risk.indicators.comparison import ScenarioResult


def print_damage(found: "DamageAssessment", said: Sequence[str] = (), *, details: bool = False) -> None:
    """The headline (or what is said instead), the models at a glance, and what to make of it."""
    console = Terminal()
    print_headlines(console, said or [headline(found)])
    _print_rest(console, found, details=details)


def print_selection(found: "Selection", *, details: bool = False) -> None:
    """What the evidence names, and the risks and the damage that it rests on."""
    console = Terminal()
    print_headlines(console, found.headlines)
    for result in found.scenarios:
        print_risks(console, result)
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


def print_risks(console: Console, result: "ScenarioResult") -> None:
    """The models under one scenario, the least risk first."""
    rows = tuple(
        (one.model, loss_interval(one.risk, result.bounds), short_verdict(result.branches[""], one.model))
        for one in result.models
    )
    columns = (Column("model"), Column(f"risk ({result.loss})"), Column("verdict"))
    print_sections([Table(f"Risk in the scenario {result.scenario.name}", columns, rows)], console)


def print_evasion(found: "FittedEvasion", out: str | None) -> None:
    """The curve at some sizes, and what is to be known of it."""
    console = Terminal()
    columns = (Column(f"size ({found.norm})" if found.norm else "size"), Column("goes undetected", "share"))
    rows = tuple((f"{size:.4g}", value) for size, value in found.values)
    print_sections([Table("Evasion curve", columns, rows)], console)
    n_seen = found.n - found.n_undetected
    sentences = [
        f"{counted(found.n, 'answer')} about sizes from {found.asked[0]:.4g} to {found.asked[1]:.4g}: "
        f"{n_seen} detected, {found.n_undetected} not. Beyond these sizes the curve is a guess."
    ]
    if found.half is not None:
        low, high = found.half.low, found.half.high
        sentences.append(f"Half goes undetected at a size of {found.half.value:.4g} [{low:.4g}, {high:.4g}].")
    if found.shape is not None and shape_warning(found.shape) is None:
        sentences.append(shape_sentence(found.shape))
    for sentence in [*sentences, *found.notes]:
        indented(console, f"· {sentence}", by=0)
    if out:
        use = f"`advrisk select RUN --evasion {out}`, or in a study: `assess: {{damage: {{evasion: {out}}}}}`"
        indented(console, f"{out} written. Use it with {use}.", by=0)
    else:
        indented(console, "Nothing was written: name a file with --out.", by=0)
