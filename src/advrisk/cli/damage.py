"""Damage as text for a terminal: the decision table, the pairs of models, and how the numbers settle."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.assess.indicators.words import loss_interval, short_verdict
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.render.terminal import indented, new_table, plain_cells, print_fitting
from advrisk.report.headline import headline, shares_at, size_columns
from advrisk.report.summary import damage_name, findings, money, percent, what_would_decide
from advrisk.risk.convergence import DAMAGE

if TYPE_CHECKING:
    from advrisk.api.evasion import FittedEvasion
    from advrisk.api.selection import Selection
    from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage
    from advrisk.risk.convergence import Convergence, ConvergenceBand
    from advrisk.risk.damage import PerturbationSize
    from advrisk.risk.indicators.comparison import ScenarioResult

Field = Callable[["ModelDamage"], str]
Shown = Mapping[str, Mapping[str, str]]  # model -> column -> what stands there

_VERDICT = 18  # columns of a terminal that a verdict needs at least
_DETAILS = (
    "of it clean error",
    "minimal adversarial distance",
    "mean adversarial distance",
)  # what only the whole table shows
_SHOWN = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)  # numbers of samples to show


def print_damage(found: "DamageAssessment", said: Sequence[str] = ()) -> None:
    """The headline (or what is said instead), the models at a glance, and what to make of it."""
    console = Console()
    print_headlines(console, said or [headline(found)])
    _print_table(console, found, {name: of for name, of in _fields(found).items() if name not in _DETAILS})
    _print_words(console, found)


def print_selection(found: "Selection") -> None:
    """What the evidence names, the risks and the whole decision table it rests on, and the pairwise comparison."""
    console = Console()
    print_headlines(console, found.headlines)
    for result in found.scenarios:
        print_risks(console, result)
    if found.damage is not None:
        _print_table(console, found.damage, _fields(found.damage))
        _print_pairs(console, found.damage)
        _print_words(console, found.damage, pairs=False)


def print_headlines(console: Console, said: Sequence[str]) -> None:
    """The answer first, in bold; then what else was asked."""
    for place, sentence in enumerate(said):
        indented(console, sentence, by=0, style="bold" if place == 0 else "")
    console.print()


def print_risks(console: Console, result: "ScenarioResult") -> None:
    """The models under one scenario, the least risk first."""
    rows = [
        [one.model, loss_interval(one.risk, result.bounds), short_verdict(result.branches[""], one.model)]
        for one in result.models
    ]
    print_fitting(console, [result.scenario.name, f"risk ({result.loss})", "verdict"], rows)


def _print_words(console: Console, found: "DamageAssessment", *, pairs: bool = True) -> None:
    for sentence in findings(found, pairs=pairs):
        indented(console, f"· {sentence}", by=0)


def _print_pairs(console: Console, found: "DamageAssessment") -> None:
    for pair in found.pairs:
        told = f"undecided; {what_would_decide(pair, found.samples_left)}" if pair.undecided else "decided"
        indented(console, f"{pair.lower} < {pair.higher}: difference {pair.difference}, {told}", by=0)
    if found.pairs:
        console.print()


def print_convergence(found: "Convergence") -> None:
    """Each number of each model at some numbers of samples, with the band that the resamples fill."""
    console = Console()
    places = [place for place, n in enumerate(found.n) if n in _nearest(found)]
    for measure in found.measures:
        name = damage_name(relative=found.relative) if measure == DAMAGE else measure
        rows = new_table(name, *(f"n = {found.n[place]}" for place in places))
        for model in found.models:
            band = found.bands[model][measure]
            rows.add_row(*plain_cells([model, *(_banded(band, place) for place in places)]))
        console.print(rows)
    indented(
        console,
        f"· Medians and 5–95 % bands of {found.resamples} resamples. A number that still moves from column to column "
        "needs more samples.",
        by=0,
    )


def print_evasion(found: "FittedEvasion", out: str | None) -> None:
    """The curve at some sizes, and what is to be known of it."""
    console = Console()
    rows = new_table(f"size ({found.norm})" if found.norm else "size", "goes undetected")
    for size, value in found.values:
        rows.add_row(*plain_cells([f"{size:.4g}", percent(value)]))
    console.print(rows)
    n_seen = found.n - found.n_undetected
    sentences = [
        f"{counted(found.n, 'answer')} about sizes from {found.asked[0]:.4g} to {found.asked[1]:.4g}: "
        f"{n_seen} detected, {found.n_undetected} not. Beyond these sizes the curve is a guess."
    ]
    if found.half is not None:
        low, high = found.half.low, found.half.high
        sentences.append(f"Half goes undetected at a size of {found.half.value:.4g} [{low:.4g}, {high:.4g}].")
    for sentence in [*sentences, *found.notes]:
        indented(console, f"· {sentence}", by=0)
    if out:
        use = f"`advrisk select RUN --evasion {out}`, or in a study: `assess: {{damage: {{evasion: {out}}}}}`"
        indented(console, f"{out} written. Use it with {use}.", by=0)
    else:
        indented(console, "Nothing was written: name a file with --out.", by=0)


def _print_table(console: Console, found: "DamageAssessment", fields: dict[str, Field]) -> None:
    """One line for each model, intervals below their values if that is narrower, or one block if even that is not."""
    shown = {row.model: {name: of(row) for name, of in fields.items()} for row in found.models}
    stacked = {
        model: {name: value.replace(" [", "\n[") for name, value in values.items()} for model, values in shown.items()
    }
    for values in (shown, stacked):
        widths = _widths(values)
        spare = console.width - sum(widths.values()) - 3 * len(widths)
        if spare >= 0:
            longest = max(len(of_model["verdict"]) for of_model in values.values())
            _print_lines(console, values, widths | {"verdict": max(_VERDICT, min(longest, _VERDICT + spare))})
            return
    for model, of_model in shown.items():
        console.print(model, style="bold", markup=False)
        for name, value in of_model.items():
            indented(console, f"{name}: {value}", by=2)


def _widths(shown: Shown) -> dict[str, int]:
    """What each column needs so that no value and no word of its heading is broken; verdicts may be."""
    widths = {"model": max(map(len, shown))}
    for values in shown.values():
        for name, value in values.items():
            needed = max(map(len, [*value.split("\n"), *name.split()]))
            widths[name] = max(widths.get(name, 0), needed)
    return widths | {"verdict": _VERDICT}


def _print_lines(console: Console, shown: Shown, widths: dict[str, int]) -> None:
    rows = new_table(*widths)
    for column, width in zip(rows.columns, widths.values(), strict=True):
        column.width = width
    for model, values in shown.items():
        rows.add_row(*plain_cells([model, *values.values()]))
    console.print(rows)


def _fields(found: "DamageAssessment") -> dict[str, Field]:
    """The columns of the table; the verdict is last."""
    fields: dict[str, Field] = {name: _share_at(eps, found) for name, eps in size_columns(found).items()}
    fields["clean accuracy"] = lambda row: percent(row.clean_accuracy)
    if any(row.clean_rejection for row in found.models):
        fields["clean inputs refused"] = lambda row: percent(row.clean_rejection)
    fields[damage_name(relative=found.relative)] = lambda row: (
        _estimate(row.relative_damage) if found.relative else percent(row.damage)
    )
    fields["of it clean error"] = lambda row: _clean_error(row, relative=found.relative)
    if found.detector is not None:
        fields |= _detector_fields(found)
    if any(row.by_people for row in found.models):
        fields["unnoticed by people"] = lambda row: percent(row.by_people)
    if found.cost is not None:
        fields["cost of an attacked input"] = _cost
    fields["minimal adversarial distance"] = lambda row: _distance(row.minimal_size)
    fields["mean adversarial distance"] = lambda row: _distance(row.mean_size)
    fields["probability of being best"] = lambda row: (
        "–" if row.probability_best is None else percent_text(row.probability_best, 1)
    )
    fields["verdict"] = lambda row: row.verdict
    return fields


def _detector_fields(found: "DamageAssessment") -> dict[str, Field]:
    """What the detector leaves; its own damage is the ranked one unless an evasion curve was given."""

    def of(name: str) -> Field:
        return lambda row: percent(getattr(row.by_detector, name))

    beside = {} if found.comparison is found.detector else {"asked about the attacks": of("any_arm")}
    return beside | {
        "of the nearest success alone": of("monte_carlo"),
        "by its fitted curve": of("by_curve"),
        "false alarms": of("false_alarms"),
    }


def _clean_error(row: "ModelDamage", *, relative: bool) -> str:
    if row.clean_error_part is None:
        return "–"
    return f"{row.clean_error_part:.3f}" if relative else percent_text(row.clean_error_part, 1)


def _share_at(eps: float, found: "DamageAssessment") -> Field:
    return lambda row: percent(shares_at(row, found)[eps])


def _distance(found: "PerturbationSize | None") -> str:
    return "–" if found is None else f"{found.value:.4g}"


def _cost(row: "ModelDamage") -> str:
    risk = row.operational_risk
    return "–" if risk is None else f"{money(risk.value)} [{money(risk.low)}, {money(risk.high)}]"


def _estimate(estimate: Estimate | None) -> str:
    return "–" if estimate is None else str(estimate)


def _nearest(found: "Convergence") -> set[int]:
    """The numbers of samples at hand that are nearest to round ones, and the last one."""
    largest = int(found.n[-1])
    near = {int(min(found.n, key=lambda n: abs(n - shown))) for shown in _SHOWN if shown < largest}
    return near | {largest}


def _banded(band: "ConvergenceBand", place: int) -> str:
    middle, low, high = band.middle[place], band.low[place], band.high[place]
    return "–" if middle != middle else f"{middle:.3g} [{low:.3g}, {high:.3g}]"
