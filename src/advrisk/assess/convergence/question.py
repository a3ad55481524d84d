"""The question of convergence: how damage, attack success rates and distances converge as samples are added."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment, assessed_convergence
from advrisk.assess.damage.words import damage_name
from advrisk.assess.protocol import Assessment
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.palette import (
    COLOURS,
    Places,
    Plot,
    cycled,
    edge_of,
    line_of,
    model_places,
    named,
    places_of,
    plain_label,
)
from advrisk.core.sections import Column, Figure, Group, Headline, Kind, Section, Table, Text
from advrisk.core.seeds import generator
from advrisk.core.values import estimate_text
from advrisk.risk.convergence import DAMAGE, MEAN, SMALLEST, Convergence
from advrisk.study import assessments
from advrisk.study.assess import ConvergenceSpec

_SHOWN = (10, 100, 1000, 10_000, 100_000)  # numbers of samples to show, those nearest to them
_BETWEEN = (30, 300, 3000, 30_000)  # and with details


@assessments.register("convergence")
class Settling(Assessment):
    """How damage, attack success rates and distances settle as samples are added."""

    kind = Convergence

    def assess(self, context: Context, spec: ConvergenceSpec) -> Convergence:
        """Assess the convergence of damage."""
        rng = generator("convergence", context.seed)
        return assessed_convergence(context.result("damage"), points=spec.points, resamples=spec.resamples, rng=rng)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """No options if damage compares models; else None."""
        found = context.attempt("damage")
        return {} if isinstance(found, DamageAssessment) and found.comparison else None

    def sections(self, result: Convergence, models: Sequence[str]) -> Iterable[Section]:
        """Damage first, then the other numbers."""
        return sections(result, models)


def sections(found: Convergence, models: Sequence[str] = ()) -> Iterator[Section]:
    """Damage first, then the other numbers."""
    places = model_places(models)
    yield Headline(headline(found))
    yield Text(_how(found), how=True)
    yield _table(found, DAMAGE)
    figures = (
        Figure(
            _title(name),
            settling(found, name, places=places),
            f"{_name(found, name)} of each model against the number of samples.",
        )
        for name in found.measures
    )
    yield Group("Each number as samples are added", tuple(figures), beside=True)
    others = tuple(_table(found, name) for name in found.measures if name != DAMAGE)
    yield Group("Other numbers as samples are added", others, folded=True)


def headline(found: Convergence) -> str:
    """The widest band of damage with all samples, and how wide it was with a tenth of them."""
    bands = {model: found.bands[model][DAMAGE] for model in found.models}
    widest = max(found.models, key=lambda model: float(bands[model].high[-1] - bands[model].low[-1]))
    now, name = estimate_text(_at(found, widest, DAMAGE, -1), _kind(found, DAMAGE)), _name(found, DAMAGE)
    of = f", the widest band of {len(found.models)} models" if len(found.models) > 1 else ""
    sentence = f"With {counted(int(found.n[-1]), 'sample')}, resamples put the {name} of {widest} at {now}{of}"
    tenth = _nearest(found, found.n[-1] / 10)
    if found.n[tenth] in (1, found.n[-1]):
        return f"{sentence}."
    then = estimate_text(_at(found, widest, DAMAGE, tenth), _kind(found, DAMAGE))
    return f"{sentence}; with {found.n[tenth]:,} it was {then}."


def _how(found: Convergence) -> tuple[str, ...]:
    share = percent_text(found.band[1] - found.band[0])
    return (
        f"Each number as samples are added: the median of {found.resamples} random draws of so many samples, and the "
        f"band that holds {share} of them. "
        "The minimal adversarial distance can only fall: it rests on a single sample, however many there are.",
    )


def _table(found: Convergence, measure: str) -> Table:
    """One number of every model at round numbers of samples, and at all of them."""
    last = len(found.n) - 1
    round_ones = {_nearest(found, n) for n in _SHOWN if n < found.n[-1]} | {last}
    between = {_nearest(found, n) for n in _BETWEEN if n < found.n[-1]} - round_ones
    shown = sorted(round_ones | between)
    kind = _kind(found, measure)
    columns = (Column(f"n = {found.n[index]:,}", kind, detail=index in between) for index in shown)
    rows = ((model, *(_at(found, model, measure, index) for index in shown)) for model in found.models)
    notes = (_note(found),) if measure == DAMAGE else ()
    return Table(_title(_name(found, measure)), (Column("model"), *columns), tuple(rows), notes)


def _note(found: Convergence) -> str:
    low, high = (f"{100 * end:g}" for end in found.band)
    return (
        f"Medians and {low}–{high} % bands of {found.resamples} resamples. A number whose band is still wide, or that "
        "still moves from column to column, needs more samples."
    )


def _nearest(found: Convergence, n: float) -> int:
    """The index of the number of samples nearest to n."""
    return int(np.abs(found.n - n).argmin())


def _at(found: Convergence, model: str, measure: str, index: int) -> Estimate | None:
    """A median of resamples and their band; None where there was nothing to measure."""
    band = found.bands[model][measure]
    value, low, high = (float(values[index]) for values in (band.middle, band.low, band.high))
    level = round(found.band[1] - found.band[0], 12)
    method = f"{found.resamples} resamples"
    return None if np.isnan(value) else Estimate(value, low, high, level, int(found.n[index]), method)


def _name(found: Convergence, measure: str) -> str:
    return damage_name(relative=found.relative) if measure == DAMAGE else measure


def _title(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def _kind(found: Convergence, measure: str) -> Kind:
    if measure in (SMALLEST, MEAN):
        return "magnitude"
    return "number" if measure == DAMAGE and found.relative else "share"


def settling(found: Convergence, measure: str, *, places: Places | None = None) -> Plot:
    """One number of every model against the number of samples: the median of the resamples, and their band."""
    lines: list[Plot] = []
    places = places_of(found.models, places)
    for model in found.models:
        band, colour = found.bands[model][measure], cycled(COLOURS, places[model])
        finite = np.isfinite(band.middle)
        n = found.n[finite].tolist()
        shared = {"type": "scatter", "x": n, "legendgroup": model}
        edge = shared | {"mode": "lines", "line": {"width": 0}}
        lines.append(edge | edge_of(model, "low") | {"y": band.low[finite].tolist()})
        filled = {"fill": "tonexty", "fillcolor": f"{colour}33"}
        lines.append(edge | edge_of(model, "high") | {"y": band.high[finite].tolist(), **filled})
        lines.append(
            shared
            | {
                "mode": "lines",
                **named(model),
                "y": band.middle[finite].tolist(),
                "line": {**line_of(places[model]), "width": 2},
                "hovertemplate": f"{plain_label(model)}<br>%{{x}} samples: %{{y:.3g}}<extra></extra>",
            }
        )
    return {
        "data": lines,
        "layout": {
            "xaxis": {"title": {"text": "samples"}, "type": "log", "dtick": 1},
            "yaxis": {"title": {"text": _name(found, measure)}, "rangemode": "tozero"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 340,
        },
    }
