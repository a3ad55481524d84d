"""Key risk indicators in words and tables, and which figures the report shows of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from advrisk.assess.damage.words import samples_that_decide
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.core.estimate import Estimate
from advrisk.core.names import listed
from advrisk.core.numbers import percent_text
from advrisk.core.palette import Places, Plot
from advrisk.report.indicator_figures import (
    Bounds,
    arm_losses,
    branch_bars,
    grouped_bars,
    loss_interval,
    loss_text,
    sunburst,
    verdict_class,
)
from advrisk.risk.decision import Pair, ahead_of, alike
from advrisk.risk.indicators.comparison import BranchComparison, ModelRisk, ScenarioResult
from advrisk.risk.indicators.tree import UNIFORM, Indicator
from advrisk.risk.losses import DEFAULT

ON_RISK = (
    "Risk is the mean loss in the deployment that the scenario describes. What the scenario does not name is clean. "
)
ON_MEANS = "What happens to inputs is averaged."
ON_WORST = "What nature does is averaged; of attacks, the worst one on each sample counts."
ON_LOWER_BOUND = "Where attacks count, risk is a lower bound: a better attack does more."
ON_DISTANCE = (
    "The mean distance says how far inputs must be moved on average to be read wrongly. It does not say whether "
    "anybody moves them, nor in which direction rain or noise does, and samples that held count for nothing in it."
)
ON_ADVERSARIAL_RISK = (
    "Adversarial risk is the share of samples that are wrong under the strongest attack within eps. It does not say "
    "how often an attacker comes by, and every mistake counts alike in it."
)
ON_MEASURES = (
    "CLEVER and its like estimate, from slopes around an input, how far it can be moved before it may be read wrongly. "
    "They try no attack, they bound nothing, and they know no weather."
)
_CONTRIBUTORS = 3
_GROUPS = 20  # classes or values of a stratum, the worst first
_CLEAN = "clean"


@dataclass(frozen=True)
class Choice:
    """One of several figures that a reader can choose."""

    figure: str
    label: str


@dataclass(frozen=True)
class Group:
    """Samples of one class, or of one value of a stratum, and the risk of every model for them."""

    name: str
    estimates: tuple[Estimate | None, ...]
    worst: tuple[bool, ...]  # whether it is the worst of its kind for that model


@dataclass(frozen=True)
class Grouped:
    """All classes, or all values of a stratum."""

    name: str
    groups: tuple[Group, ...]
    n_more: int  # that are not shown


@dataclass(frozen=True)
class Line:
    """One branch of the tree of one model."""

    depth: int
    branch: Indicator
    share: float | None  # of the whole risk


@dataclass(frozen=True)
class ModelView:
    """One model under one scenario and loss."""

    found: ModelRisk
    verdict: str
    kind: str  # of verdict
    drivers: str
    sunburst: str | None  # name of the figure
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ResultView:
    """One scenario under one loss, as the page shows it."""

    key: str
    figure: str  # of all models
    result: ScenarioResult
    headline: str
    sentences: tuple[str, ...]
    models: tuple[ModelView, ...]
    branches: tuple[Choice, ...]
    levels: tuple[Choice, ...]
    grouped: tuple[Grouped, ...]


@dataclass(frozen=True)
class HeatMap:
    """The arms under one loss."""

    figure: str
    loss: str
    columns: int  # as many models


def indicator_content(
    found: IndicatorAssessment | None,
    reason: str = "",
    *,
    places: Places | None = None,
    samples_left: int | None = None,
) -> dict[str, Any]:
    """What the template shows of indicators, or why it cannot."""
    figures: dict[str, Plot] = {}
    views: list[ResultView] = []
    heat_maps: list[HeatMap] = []
    if found is not None:
        views = [_view(f"risk{place}", one, figures, places) for place, one in enumerate(found.results)]
        heat_maps = _heat_maps(found, figures)
    return {
        "indicators": found,
        "unassessed": reason,
        "indicator_views": views,
        "heat_maps": heat_maps,
        "indicator_figures": figures,
        "indicator_words": [] if found is None else [*on_risk(found), *found.notes],
        "on_loss": {} if found is None else loss_meanings(found),
        "measures": [] if found is None else measure_names(found),
        "on_robustness": [] if found is None else on_robustness(found),
        "on_risk_pair": partial(on_pair, samples_left=samples_left),
    }


# Words


def on_risk(found: IndicatorAssessment) -> list[str]:
    """How risks are meant."""
    attacked = any(leaf.aggregate == "max" for one in found.results for leaf in one.models[0].contributors)
    return [ON_RISK + ON_WORST, ON_LOWER_BOUND] if attacked else [ON_RISK + ON_MEANS]


def risk_headline(result: ScenarioResult) -> str:
    """The model with the least risk in this deployment, or between which the evidence does not decide."""
    left_out = result.n_samples - len(result.samples)
    so_far = f" So far: {left_out} of {result.n_samples} samples have no verdict yet." if result.n_unfinished else ""
    return f"{_verdict(result)}{so_far}"


def _verdict(result: ScenarioResult) -> str:
    best = result.models[0]
    amount = loss_interval(best.risk, result.bounds)
    if len(result.models) == 1:
        return f"{best.model} has a risk of {amount}; there is no other model to compare it with."
    if result.least_bad is not None:
        least = f"{best.model} has the least risk of {len(result.models)} models: {amount}"
        beside = loss_text(result.models[1].risk.value, result.bounds)
        if result.scenario.name == UNIFORM:  # no study says that these happen equally often
            return f"With all corruptions equally weighted, {least} ({result.models[1].model} {beside})."
        return f"{least} ({result.models[1].model} {beside})."
    names = [best.model, *alike(best.model, result.pairs)]
    risks = {one.model: loss_text(one.risk.value, result.bounds) for one in result.models}
    return f"Undecided between {listed(names)}: risk {listed([risks[name] for name in names])}."


def stated_results(found: IndicatorAssessment) -> list[ScenarioResult]:
    """The scenarios that the user described, under the first loss."""
    return [one for one in found.results if one.loss == found.losses[0] and one.scenario.name != UNIFORM]


def in_scenario(result: ScenarioResult) -> str:
    """The headline of a result that names its scenario."""
    said = risk_headline(result)
    rest = said[0].lower() + said[1:] if said.startswith("Undecided") else said
    loss = "" if result.loss == DEFAULT else f" (loss: {result.loss})"
    return f"In the scenario {result.scenario.name}{loss}, {rest}"


def on_result(result: ScenarioResult) -> list[str]:
    """What to know beside the headline."""
    best = result.models[0]
    sentences = [f"The risk of {best.model} comes from: {drivers(best)}."] if best.risk.value > 0 else []
    if worst := worst_off(result):
        sentences.append(f"Worst off with {best.model}: {worst}.")
    if result.scenario.uncertain and best.tree.weights_part >= 0.01:
        sentences.append(
            f"{percent_text(best.tree.weights_part)} of the uncertainty of its risk comes from the uncertain weights "
            "of the scenario: more samples do not make that smaller."
        )
    n_undecided = sum(pair.undecided for pair in result.pairs)
    if n_undecided and len(result.pairs) > 1:
        are = "is" if n_undecided == 1 else "are"
        sentences.append(f"Of {len(result.pairs)} pairs of models, {n_undecided} {are} undecided.")
    return sentences


def worst_off(result: ScenarioResult) -> str:
    """`class 8, 12.3 % [10.1, 14.9]`: whom the best model serves worst, where that is clear."""
    worst = _worst_group(result.models[0])
    return "" if worst is None else f"{worst[0]}, {loss_interval(worst[1], result.bounds)}"


def drivers(model: ModelRisk, most: int = _CONTRIBUTORS) -> str:
    """`rain 62 %; clean inputs 20 %`: the branches that contribute most."""
    total = model.risk.value
    shown = [one for one in model.contributors if one.contribution.value > 0]
    if total <= 0 or not shown:
        return "nothing"
    names = branch_names(model.tree)
    told = [f"{names[one.path]} {percent_text(one.contribution.value / total)}" for one in shown[:most]]
    return "; ".join(told + ([f"{len(shown) - most} more"] if len(shown) > most else []))


def short_verdict(compared: BranchComparison, model: str) -> str:
    """The verdict on a model, with a few of the others' names."""
    kind = verdict_class(compared.verdict(model))
    if kind == "more risk than another":
        return f"more risk than {listed(ahead_of(model, compared.pairs))}"
    if kind == "undecided":
        return f"undecided against {listed(alike(model, compared.pairs))}"
    return compared.verdict(model)


def on_pair(pair: Pair, samples_left: int | None = None) -> str:
    """Whether two models are told apart, and what would do it."""
    if not pair.undecided:
        return "yes"
    if pair.more_samples is not None:
        return f"undecided: {samples_that_decide(pair.more_samples, samples_left)}"
    if pair.difference.value == 0:
        return "undecided: no difference was seen, so the number of samples that would decide is unknown"
    return "undecided: the weights of the scenario are too uncertain for more samples to decide"


def loss_meanings(found: IndicatorAssessment) -> dict[str, str]:
    """Loss -> the first line of what it says of itself."""
    if found.tensors is None:
        return {}
    texts = {loss.label: (loss.function.__doc__ or "").strip() for loss in found.tensors.losses}
    lines = {label: text.partition("\n")[0].replace("`", "") for label, text in texts.items()}
    return {label: line for label, line in lines.items() if line}


def on_robustness(found: IndicatorAssessment) -> list[str]:
    """What the numbers beside do not say."""
    told = []
    if any(one.mean_distance for one in found.robustness):
        told.append(ON_DISTANCE)
    if any(one.adversarial_risk for one in found.robustness):
        told.append(ON_ADVERSARIAL_RISK)
    return [*told, ON_MEASURES] if found.measures else told


def measure_names(found: IndicatorAssessment) -> list[str]:
    """Measures that were stored of some model, each once."""
    return list(dict.fromkeys(name for of_model in found.measures.values() for name in of_model))


def branch_names(tree: Indicator) -> dict[str, str]:
    """Path -> what the branch is called: by its own name where no other has it, else by its path."""
    names = [one.name for one in tree.walk()]
    return {
        one.path: "clean inputs" if one.path == _CLEAN else one.name if names.count(one.name) == 1 else one.path
        for one in tree.walk()
    }


# What the page shows


def _view(key: str, result: ScenarioResult, figures: dict[str, Plot], places: Places | None) -> ResultView:
    name = figure_name(result)
    figures[f"{name}, all models"] = branch_bars(result, places=places)
    branches = [_branch_choice(result, path, figures, places) for path in _by_contribution(result)]
    inner = [one for one in result.models[0].tree.walk() if one.children]
    return ResultView(
        key=key,
        figure=f"{name}, all models",
        result=result,
        headline=risk_headline(result),
        sentences=tuple(on_result(result)),
        models=tuple(_model_view(f"{name}, ring of {one.model}", result, one, figures) for one in result.models),
        branches=tuple(branches),
        levels=tuple(_level_choice(result, one, figures, places) for one in inner),
        grouped=tuple(_grouped(result)),
    )


def figure_name(result: ScenarioResult) -> str:
    """What its figures are called, before what each of them shows."""
    return f"risk {result.scenario.name} by {result.loss}"


def _model_view(name: str, result: ScenarioResult, one: ModelRisk, figures: dict[str, Plot]) -> ModelView:
    drawn = sunburst(one.tree, result.bounds)
    if drawn is not None:
        figures[name] = drawn
    verdict = short_verdict(result.branches[""], one.model)
    return ModelView(
        found=one,
        verdict=verdict,
        kind=verdict_class(verdict),
        drivers=drivers(one),
        sunburst=None if drawn is None else name,
        lines=tuple(tree_lines(one.tree)),
    )


def tree_lines(tree: Indicator, depth: int = 0, whole: float | None = None) -> list[Line]:
    """The branches from the root down, each with its share of the whole risk."""
    whole = tree.contribution.value if whole is None else whole
    lines = [Line(depth, tree, tree.contribution.value / whole if whole > 0 else None)]
    return lines + [line for child in tree.children for line in tree_lines(child, depth + 1, whole)]


def _by_contribution(result: ScenarioResult) -> list[str]:
    """Paths of all branches, that first which contributes most to the risk of some model."""
    most = {
        path: max(one.tree.at(path).contribution.value for one in result.models) for path in result.branches if path
    }
    leaves = {one.path for one in result.models[0].tree.leaves()}
    return sorted(most, key=lambda path: (path not in leaves, -most[path], path))


def _branch_choice(result: ScenarioResult, path: str, figures: dict[str, Plot], places: Places | None) -> Choice:
    name = f"{figure_name(result)}, branch {path}"
    figures[name] = branch_bars(result, path, places=places)
    shown = branch_names(result.models[0].tree)[path]
    parts = [(one.tree.at(path).contribution.value, one) for one in result.models if one.risk.value > 0]
    if not parts:
        return Choice(name, shown)
    share, model = max(((part / one.risk.value, one.model) for part, one in parts), key=lambda pair: pair[0])
    return Choice(name, f"{shown} – up to {percent_text(share)} of the risk ({model})")


def _level_choice(result: ScenarioResult, one: Indicator, figures: dict[str, Plot], places: Places | None) -> Choice:
    name = f"{figure_name(result)}, {f'within {one.path}' if one.path else 'first level'}"
    figures[name] = grouped_bars(result, one.path, places=places)
    return Choice(name, f"within {one.path}" if one.path else "first level of the scenario")


def _grouped(result: ScenarioResult) -> list[Grouped]:
    """Classes, then strata; of many only the worst."""
    models = result.models
    kinds: dict[str, list[Mapping[Any, Estimate | None]]] = {"class": [one.by_class for one in models]}
    for name in models[0].by_stratum:
        kinds[name] = [one.by_stratum[name] for one in models]
    return [_groups(name, columns) for name, columns in kinds.items() if len(columns[0]) > 1]


def _groups(name: str, columns: Sequence[Mapping[Any, Estimate | None]]) -> Grouped:
    values = list(columns[0])
    most = [max((_amount(column[value]) for value in values), default=0.0) for column in columns]
    rows = [
        Group(
            str(value),
            tuple(column[value] for column in columns),
            tuple(0 < high == _amount(column[value]) for column, high in zip(columns, most, strict=True)),
        )
        for value in values
    ]
    if len(rows) > _GROUPS:
        rows.sort(key=lambda row: -max(map(_amount, row.estimates)))
    return Grouped(name, tuple(rows[:_GROUPS]), max(0, len(rows) - _GROUPS))


def _worst_group(model: ModelRisk) -> tuple[str, Estimate] | None:
    """The class or value of a stratum with the largest risk, where its interval lies above the whole risk."""
    found = [(f"class {label}", one) for label, one in model.by_class.items() if one is not None]
    for name, of_value in model.by_stratum.items():
        found += [(f"{name} = {value}", one) for value, one in of_value.items() if one is not None]
    clear = [(name, one) for name, one in found if one.low > model.risk.value]
    return max(clear, key=lambda entry: entry[1].value) if clear else None


def _amount(estimate: Estimate | None) -> float:
    return float("-inf") if estimate is None else estimate.value


def _heat_maps(found: IndicatorAssessment, figures: dict[str, Plot]) -> list[HeatMap]:
    maps = []
    bounds: dict[str, Bounds] = {one.loss: one.bounds for one in found.results}
    for loss, limits in bounds.items():
        name = f"arms by {loss}"
        figures[name] = arm_losses(found, loss, limits)
        maps.append(HeatMap(name, loss, len(found.arms[loss])))
    return maps
