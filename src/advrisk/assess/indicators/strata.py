"""Who bears the risk: the same scenario for samples of one class, or of one value of a stratum."""

from collections.abc import Mapping, Sequence
from typing import Any

from advrisk.assess.indicators.words import label, loss_kind
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Cell, Column, Group, Table, Text, Value, distinct_columns
from advrisk.risk.indicators.comparison import ScenarioResult

ByValue = Mapping[Any, Estimate | None]

_MOST = 20  # classes or values of a stratum, the worst first
_FEW = 4  # that are shown at once
_ON_STRATA = (
    "How to read this: the risk in the same scenario, for some of the samples only. The largest of each column is "
    "bold; a dash means that some branch cannot happen to these samples."
)


def who_bears_it(result: ScenarioResult) -> Group | None:
    """By class, then by each stratum; None where there is one class only, and no stratum."""
    kinds: dict[str, list[ByValue]] = {"class": [one.by_class for one in result.models]}
    for name in result.models[0].by_stratum:
        kinds[name] = [one.by_stratum[name] for one in result.models]
    several = {name: each for name, each in kinds.items() if len(each[0]) > 1}
    groups = (
        Group(f"By {name}", (_table(result, name, each),), folded=place > 0 or len(each[0]) > _FEW)
        for place, (name, each) in enumerate(several.items())
    )
    return Group("Who bears it", (Text((_ON_STRATA,), how=True), *groups)) if several else None


def _table(result: ScenarioResult, name: str, columns: Sequence[ByValue]) -> Table:
    values = list(columns[0])
    most = [max(_amount(column[value]) for value in values) for column in columns]
    if len(values) > _MOST:
        values.sort(key=lambda value: -max(_amount(column[value]) for column in columns))
    rows = [
        (str(value), *(_risk(column[value], high) for column, high in zip(columns, most, strict=True)))
        for value in values[:_MOST]
    ]
    n_more = len(values) - _MOST
    notes = (f"And {n_more} more with less risk: `advrisk show indicators RUN --csv FILE` lists all.",)
    kind = loss_kind(result.bounds)
    shown = distinct_columns([Column(name), *(Column(one.model, kind) for one in result.models)])
    return Table(f"Risk by {name}: {label(result)}", shown, tuple(rows), notes if n_more > 0 else ())


def _risk(estimate: Estimate | None, most: float) -> Value:
    return Cell(estimate, mark="worst" if 0 < most == _amount(estimate) else "")


def _amount(estimate: Estimate | None) -> float:
    return float("-inf") if estimate is None else estimate.value
