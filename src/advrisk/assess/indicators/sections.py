"""Sections of key risk indicators: the risk in each scenario, its contributions, and the groups that bear it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.branches import branches, contributions
from advrisk.assess.indicators.figures import arm_losses, branch_bars
from advrisk.assess.indicators.words import (
    drivers,
    full_headline,
    label,
    loss_interval,
    loss_kind,
    loss_meanings,
    on_pair,
    on_result,
    on_risk,
    on_robustness,
    risk_headline,
    scenario_drivers,
    short_verdict,
    stated_results,
    sureness,
    undecided,
)
from advrisk.assess.pairs import pair_quantities
from advrisk.core.estimate import Estimate, NamedEstimate
from advrisk.core.numbers import level_text
from advrisk.core.palette import Places, model_places
from advrisk.core.sections import (
    Cell,
    Column,
    Figure,
    Front,
    Group,
    Headline,
    Kind,
    Section,
    Summary,
    Table,
    Text,
    Tile,
    Value,
    distinct_columns,
)
from advrisk.risk.indicators.comparison import ModelRisk, ScenarioResult
from advrisk.risk.indicators.robustness import Robustness

_ON_MODELS = (
    "How to read this: a model is undecided if the difference to another one, on the same samples, may be zero; "
    "overlapping intervals alone do not mean that."
)
_ON_PAIRS = (
    "How to read this: the difference of their risks on the same samples, where common errors cancel out. If its "
    "interval contains zero, they are undecided; the number of samples is an order of magnitude."
)
_ON_ARMS = (
    "How to read this: a cell is the mean loss of a model under one arm alone, independent of the scenario. "
    "Brighter is worse. A row that is bright throughout is hard for all; a bright cell in a dark row is a weakness of "
    "one model."
)
_ON_ROBUSTNESS = "These numbers are often mistaken for risk. They ignore the scenario and can rank models differently."
ByValue = Mapping[Any, Estimate | None]

_ON_TILES = 3  # scenarios
_MOST = 20  # classes or values of a stratum, the worst first
_FEW = 4  # classes or values that are shown unfolded
_ON_STRATA = (
    "How to read this: the risk in the same scenario, for some of the samples only. The largest of each column is "
    "bold; a dash means that some branch cannot happen to these samples."
)


def sections(assessment: IndicatorAssessment, models: Sequence[str] = ()) -> Iterator[Section]:
    """Each scenario under each loss, then every arm, and robustness numbers."""
    places = model_places(models)
    yield Headline(full_headline(assessment.results[0]))
    yield from _summaries(assessment)
    yield Front(_tiles(assessment))
    yield Text(
        (
            "How large is the risk where the model will work, what drives it, and which model has the least? Every "
            f"part of a scenario is a key risk indicator. Brackets hold {level_text(assessment.level)} intervals.",
        ),
        how=True,
    )
    yield Text((*on_risk(assessment), *assessment.notes))
    if len(assessment.results) > 1:
        yield _overview(assessment.results)
    meanings = loss_meanings(assessment)
    for one in assessment.results:
        title = f"Scenario {one.scenario.name}, loss {one.loss}"
        yield Group(title, tuple(_of_result(assessment, one, meanings.get(one.loss, ""), places)))
    if assessment.arms:
        yield _arms(assessment)
    if assessment.robustness or assessment.measures:
        yield Group("Robustness numbers beside it", tuple(_robustness_numbers(assessment)))


def _tiles(assessment: IndicatorAssessment) -> tuple[Tile, ...]:
    """The risk of each model in the scenarios of the study."""
    facts: dict[str, list[tuple[Column, Value]]] = {}
    for result in stated_results(assessment)[:_ON_TILES]:
        column = Column(f"risk, {result.scenario.name}", loss_kind(result.bounds))
        for one in result.models:
            facts.setdefault(one.model, []).append((column, one.risk))
    return tuple(Tile(model, facts=tuple(risks)) for model, risks in facts.items())


def risk_table(result: ScenarioResult) -> Table:
    """The models under one scenario, the least risk first."""
    rows = tuple(
        (one.model, loss_interval(one.risk, result.bounds), short_verdict(result.branches[""], one.model))
        for one in result.models
    )
    columns = (Column("model"), Column(f"risk ({result.loss})"), Column("verdict"))
    return Table(f"Risk in the scenario {result.scenario.name}", columns, rows)


def quantities(assessment: IndicatorAssessment) -> Iterator[NamedEstimate]:
    """The risk of every model, overall, given every branch and by stratum, the differences, and stored measures."""
    for result in assessment.results:
        yield from _risks(result)
    units = {result.loss: _unit(result) for result in assessment.results}
    for loss, by_model in assessment.arms.items():
        for model, by_arm in by_model.items():
            for arm in _corruptions(assessment, model, by_arm):
                of, text, unit = f"{loss}.{arm}", f"{loss} under {arm}", units.get(loss, "number")
                yield NamedEstimate("corruption_risk", model, by_arm[arm], of=of, text=text, unit=unit, loss=loss)
    for model, measures in assessment.measures.items():
        for name, estimate in measures.items():
            of = name.partition("@")[0]
            yield NamedEstimate("measure", model, estimate, of=of, text=f"{name}, mean over samples")


def _risks(result: ScenarioResult) -> Iterator[NamedEstimate]:
    """The risks of one scenario under one loss."""
    scenario, loss, unit = result.scenario.name, result.loss, _unit(result)
    where, text = f"{scenario}.{loss}", f"{loss} in {scenario}"
    for one in result.models:
        for branch in one.tree.walk():
            name, of, about = ("branch_risk", f"{where}.{branch.path}", f"{text}, given {branch.path}")
            if not branch.path:
                name, of, about = ("risk", where, text)
            yield NamedEstimate(name, one.model, branch.value, of=of, text=about, unit=unit, loss=loss)
        for stratum, by_value in one.by_stratum.items():
            for value, risk in by_value.items():
                if risk is not None:
                    of, about = f"{where}.{stratum}={value}", f"{text} where {stratum} is {value}"
                    yield NamedEstimate("stratum_risk", one.model, risk, of=of, text=about, unit=unit, loss=loss)
    yield from pair_quantities("risk_difference", text, result.pairs, where=f"{where}.")


def _corruptions(assessment: IndicatorAssessment, model: str, arms: Iterable[str]) -> list[str]:
    if assessment.tensors is None:
        return []
    kinds = dict(zip(assessment.tensors[model].arms, assessment.tensors[model].kind, strict=True))
    return [arm for arm in arms if kinds[arm] == "corruption"]


def _unit(result: ScenarioResult) -> Literal["share", "number"]:
    return "share" if result.bounds == (0.0, 1.0) else "number"


def _summaries(assessment: IndicatorAssessment) -> Iterator[Summary]:
    """Sentences for the executive summary, which itself adds drivers without a stated scenario."""
    yield Summary("sure", tuple(sureness(assessment)))
    yield Summary("drivers", tuple(text for one in stated_results(assessment) for text in scenario_drivers(one)))
    yield Summary("undecided", tuple(undecided(assessment)))


def _overview(results: Sequence[ScenarioResult]) -> Table:
    kinds = {loss_kind(one.bounds) for one in results}
    kind: Kind = kinds.pop() if len(kinds) == 1 else "text"
    several = len({one.loss for one in results}) > 1
    rows: list[tuple[Value, ...]] = []
    for one in results:
        best = one.models[0]
        risk = best.risk if kind != "text" else loss_interval(best.risk, one.bounds)
        verdict = "decided" if one.least_bad else short_verdict(one.branches[""], best.model)
        rows.append((one.scenario.name, *([one.loss] if several else []), best.model, risk, verdict))
    losses = [Column("loss")] if several else []
    columns = (Column("scenario"), *losses, Column("least risk"), Column("its risk", kind), Column("verdict"))
    return Table("The least risk in every scenario", columns, tuple(rows))


def _of_result(
    assessment: IndicatorAssessment, result: ScenarioResult, meaning: str, places: Places
) -> Iterator[Section]:
    if len(assessment.results) > 1:
        yield Headline(risk_headline(result))
    yield Text(tuple(on_result(result, assessment.samples_left)))
    yield Text((*([f"Loss {result.loss}: {meaning}"] if meaning else []), _ON_MODELS), how=True)
    yield _models(result)
    yield Figure(
        f"Risk of every model with its interval: {label(result)}",
        branch_bars(result, places=places),
        "Risk of each model with its interval; the table above has the same numbers.",
    )
    if result.pairs:
        yield Group("Pairwise comparison", (Text((_ON_PAIRS,), how=True), _pairs(assessment, result)), folded=True)
    yield from branches(result, places)
    yield contributions(result)
    if group := who_bears_it(result):
        yield group


def _models(result: ScenarioResult) -> Table:
    several = len(result.models) > 1
    columns = (
        Column("model"),
        Column("risk", loss_kind(result.bounds)),
        *([Column("probability of least risk", "share")] if several else []),
        Column("verdict"),
        Column("what contributes most"),
    )
    rows = (
        (
            one.model,
            one.risk,
            *([one.probability_best] if several else []),
            _verdict(one, result),
            drivers(one),
        )
        for one in result.models
    )
    return Table(f"Risk of every model: {label(result)}", columns, tuple(rows), lead=True)


def _verdict(one: ModelRisk, result: ScenarioResult) -> Value:
    verdict = short_verdict(result.branches[""], one.model)
    return Cell(verdict, mark="best") if one.model == result.least_bad else verdict


def _pairs(assessment: IndicatorAssessment, result: ScenarioResult) -> Table:
    columns = (
        Column("less risk"),
        Column("more risk"),
        Column("difference", loss_kind(result.bounds)),
        Column("verdict"),
    )
    rows = ((pair.lower, pair.higher, pair.difference, on_pair(pair, assessment.samples_left)) for pair in result.pairs)
    return Table(f"Pairwise difference of risk: {label(result)}", columns, tuple(rows))


def _arms(assessment: IndicatorAssessment) -> Group:
    """The arms under each loss as a heat map."""
    bounds = {one.loss: one.bounds for one in assessment.results}
    maps = [
        Figure(
            f"Mean loss of every arm: {loss}",
            arm_losses(assessment, loss, limits),
            f"Heat map of the mean loss {loss}, arms by models.",
            columns=len(assessment.arms[loss]),
        )
        for loss, limits in bounds.items()
    ]
    return Group("Every arm for every model", (Text((_ON_ARMS,), how=True), *maps))


def _robustness_numbers(assessment: IndicatorAssessment) -> Iterator[Section]:
    """Robustness numbers, which are often mistaken for risk."""
    if assessment.robustness:
        columns = (
            Column("model"),
            Column("norm"),
            Column("mean distance of samples broken", "number"),
            Column("samples broken", "count", detail=True),
            Column("with incorrect samples at 0 (ρ₁)", "number"),
            Column("incorrect within eps (ρ₂)", "share"),
            Column("eps", "distance"),
        )
        rows = tuple(map(_robustness, assessment.robustness))
        yield Table("Robustness of every model", columns, rows, notes=(_ON_ROBUSTNESS,))
    if assessment.measures:
        yield _measures(assessment)
    yield Text(tuple(on_robustness(assessment)), how=True)


def _robustness(one: Robustness) -> tuple[Value, ...]:
    size = one.mean_distance.estimate if one.mean_distance else None
    return one.model, one.norm, size, size.n if size else 0, one.rho_1, one.adversarial_risk, one.eps


def _measures(assessment: IndicatorAssessment) -> Table:
    names = list(dict.fromkeys(name for of_model in assessment.measures.values() for name in of_model))
    short = [name.partition("@")[0] for name in names]
    shown = [brief if short.count(brief) == 1 else name for name, brief in zip(names, short, strict=True)]
    columns = distinct_columns([Column("model"), *(Column(name, "number") for name in shown)])
    rows = []
    for model, of_model in assessment.measures.items():
        each = (of_model.get(name) for name in names)
        rows.append((model, *(one and Cell(one, (f"{one.n} samples",)) for one in each)))
    return Table("Measures of every model", columns, tuple(rows))


def who_bears_it(result: ScenarioResult) -> Group | None:
    """The risk by class and by each stratum; None if there is one class and no stratum."""
    kinds: dict[str, list[ByValue]] = {"class": [one.by_class for one in result.models]}
    for name in result.models[0].by_stratum:
        kinds[name] = [one.by_stratum[name] for one in result.models]
    several = {name: each for name, each in kinds.items() if len(each[0]) > 1}
    groups = (
        Group(f"By {name}", (_table(result, name, each),), folded=index > 0 or len(each[0]) > _FEW)
        for index, (name, each) in enumerate(several.items())
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
