"""Sentences on key risk indicators: which model, its risk, what drives it, and what would decide."""

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.pairs import samples_that_decide
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, listed
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.sections import Kind
from advrisk.core.values import estimate_text, number_text
from advrisk.risk.decision import Pair, ahead_of, undecided_with
from advrisk.risk.indicators.comparison import BranchComparison, ModelRisk, ScenarioResult
from advrisk.risk.indicators.tree import UNIFORM, Indicator
from advrisk.risk.losses import DEFAULT

Bounds = tuple[float, float]  # between which a loss lies

ON_RISK = (
    "Risk is the mean loss in the deployment that the scenario describes. What the scenario does not name is clean. "
)
ON_MEANS = "What happens to inputs is averaged."
ON_WORST = "What nature does is averaged; of attacks, the worst one on each sample counts."
ON_LOWER_BOUND = "Where attacks count, risk is a lower bound: a better attack does more."
ON_DISTANCE = (
    "The mean distance says how far inputs must be moved on average to be misclassified. It does not say whether "
    "anybody moves them, nor in which direction rain or noise does; samples that resisted do not count in it."
)
ON_ADVERSARIAL_RISK = (
    "Adversarial risk is the share of samples that are incorrect under the strongest attack within eps. It does not "
    "say how often an attack happens, and every mistake has the same weight."
)
ON_MEASURES = (
    "CLEVER and similar measures estimate, from slopes around an input, how far it can be moved before it may be "
    "misclassified. They run no attack, bound nothing, and ignore corruptions."
)
EQUALLY = "With all corruptions equally weighted"
_CONTRIBUTORS = 3
_CLEAN = "clean"
_LEADING = 3  # undecided pairs that are written out


def loss_kind(bounds: Bounds) -> Kind:
    """The format of a loss: percent if it lies between 0 and 1, else a number."""
    return "risk" if bounds == (0.0, 1.0) else "magnitude"


def loss_text(value: float, bounds: Bounds) -> str:
    """A loss in its unit."""
    return number_text(value, loss_kind(bounds))


def loss_interval(estimate: Estimate, bounds: Bounds) -> str:
    """`12.3 % [10.1, 14.9]`."""
    return estimate_text(estimate, loss_kind(bounds))


def on_risk(assessment: IndicatorAssessment) -> list[str]:
    """What risk means here."""
    attacked = any(leaf.aggregate == "max" for one in assessment.results for leaf in one.models[0].contributors)
    return [ON_RISK + ON_WORST, ON_LOWER_BOUND] if attacked else [ON_RISK + ON_MEANS]


def risk_headline(result: ScenarioResult) -> str:
    """The model with the least risk in this deployment, or the models between which it is undecided."""
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
        if result.scenario.name == UNIFORM:  # equal weights are an assumption, so the headline names them
            return f"{EQUALLY}, {least} ({result.models[1].model} {beside})."
        return f"{least} ({result.models[1].model} {beside})."
    names = [best.model, *undecided_with(best.model, result.pairs)]
    risks = {one.model: loss_text(one.risk.value, result.bounds) for one in result.models}
    return f"Undecided between {listed(names)}: risk {listed([risks[name] for name in names])}."


def stated_results(assessment: IndicatorAssessment) -> list[ScenarioResult]:
    """The results of the study's scenarios, under the first loss."""
    return [one for one in assessment.results if one.loss == assessment.losses[0] and one.scenario.name != UNIFORM]


def in_scenario(result: ScenarioResult) -> str:
    """The headline of a result that names its scenario."""
    text = risk_headline(result)
    continued = text[0].lower() + text[1:] if text.startswith("Undecided") else text
    loss = "" if result.loss == DEFAULT else f" (loss: {result.loss})"
    return f"In the scenario {result.scenario.name}{loss}, {continued}"


def full_headline(result: ScenarioResult) -> str:
    """The headline where nothing else names the scenario."""
    if result.scenario.name != UNIFORM:
        return in_scenario(result)
    text = risk_headline(result)
    return text if text.startswith(EQUALLY) else f"{EQUALLY}: {text}"


def on_result(result: ScenarioResult, samples_left: int | None = None) -> list[str]:
    """Sentences below the headline."""
    best = result.models[0]
    sentences = [f"The risk of {best.model} comes from: {drivers(best)}."] if best.risk.value > 0 else []
    if worst := worst_off(result):
        sentences.append(f"Worst off with {best.model}: {worst}.")
    if result.scenario.uncertain and best.tree.weights_part >= 0.01:
        sentences.append(
            f"{percent_text(best.tree.weights_part)} of the uncertainty of its risk comes from the uncertain weights "
            "of the scenario: more samples do not make that smaller."
        )
    sentences += [f"{text}." for text in _on_leading_pairs(result, samples_left)[:_LEADING]]
    n_undecided = sum(pair.undecided for pair in result.pairs)
    if n_undecided and len(result.pairs) > 1:
        are = "is" if n_undecided == 1 else "are"
        sentences.append(f"Of {len(result.pairs)} pairs of models, {n_undecided} {are} undecided.")
    return [*sentences, f"{counted(len(result.samples), 'sample')}."]


def _on_leading_pairs(result: ScenarioResult, samples_left: int | None) -> list[str]:
    """What would decide the undecided pairs of the model with the least risk."""
    best = result.models[0].model
    pairs = [pair for pair in result.pairs if pair.undecided and best in (pair.lower, pair.higher)]
    return [f"{pair.lower} and {pair.higher}, {on_pair(pair, samples_left)}" for pair in pairs]


def label(result: ScenarioResult) -> str:
    """The part of a title that identifies the result."""
    return f"{result.scenario.name}, {result.loss}"


# For the executive summary


def sureness(assessment: IndicatorAssessment) -> list[str]:
    """The least risk and its uncertainty, in each stated scenario."""
    return [_on_least_risk(one) for one in stated_results(assessment)]


def _on_least_risk(result: ScenarioResult) -> str:
    best = result.models[0]
    often = best.probability_best
    beside = "" if often is None else f", least in {percent_text(often, 1)} of draws from its uncertainty"
    risk = f"{loss_interval(best.risk, result.bounds)} ({level_text(result.level)} interval)"
    return f"In the scenario {result.scenario.name}, {best.model}: risk {risk}{beside}."


def scenario_drivers(result: ScenarioResult, model: str | None = None) -> list[str]:
    """What drives the risk of a model, by default of the one with the least risk."""
    best = next((row for row in result.models if row.model == model), result.models[0])
    if best.risk.value <= 0:
        return []
    where = EQUALLY if result.scenario.name == UNIFORM else f"In the scenario {result.scenario.name}"
    worst = worst_off(result) if best is result.models[0] else ""
    beside = f" Worst off: {worst}." if worst else ""
    return [f"{where}, the risk of {best.model} comes from: {drivers(best)}.{beside}"]


def undecided(assessment: IndicatorAssessment) -> list[str]:
    """The undecided pairs of each scenario, and what would decide them."""
    sentences = [
        f"{one.scenario.name}: {text}."
        for one in stated_results(assessment)
        for text in _on_leading_pairs(one, assessment.samples_left)
    ]
    first = assessment.results[0]
    if first.scenario.name == UNIFORM and (n := sum(pair.undecided for pair in first.pairs)):
        sentences.append(f"{EQUALLY}, {n} of {counted(len(first.pairs), 'pair')} of models.")
    return sentences


# Pieces


def worst_off(result: ScenarioResult) -> str:
    """`class 8, 12.3 % [10.1, 14.9]`: the group that the best model serves worst, if that is significant."""
    worst = _worst_group(result.models[0])
    return "" if worst is None else f"{worst[0]}, {loss_interval(worst[1], result.bounds)}"


def drivers(model: ModelRisk, most: int = _CONTRIBUTORS) -> str:
    """`rain 62 %; clean inputs 20 %`: the branches that contribute most."""
    total = model.risk.value
    shown = [one for one in model.contributors if one.contribution.value > 0]
    if total <= 0 or not shown:
        return "nothing"
    names = branch_names(model.tree)
    parts = [f"{names[one.path]} {percent_text(one.contribution.value / total)}" for one in shown[:most]]
    return "; ".join(parts + ([f"{len(shown) - most} more"] if len(shown) > most else []))


def short_verdict(compared: BranchComparison, model: str) -> str:
    """The verdict on a model, with the names of a few others."""
    if better := ahead_of(model, compared.pairs):
        return f"more risk than {listed(better)}"
    equal = undecided_with(model, compared.pairs)
    return f"undecided against {listed(equal)}" if equal else compared.verdict(model)


def on_pair(pair: Pair, samples_left: int | None = None) -> str:
    """Whether a pair is decided, and what would decide it."""
    if not pair.undecided:
        return "decided"
    if pair.more_samples is not None:
        return f"undecided: {samples_that_decide(pair.more_samples, samples_left)}"
    if pair.difference.value == 0:
        return "undecided: the difference is 0, so the number of samples that would decide is unknown"
    return "undecided: the weights of the scenario are too uncertain for more samples to decide"


def loss_meanings(assessment: IndicatorAssessment) -> dict[str, str]:
    """Loss -> the first line of its docstring."""
    if assessment.tensors is None:
        return {}
    texts = {loss.label: (loss.function.__doc__ or "").strip() for loss in assessment.tensors.losses}
    lines = {label: text.partition("\n")[0].replace("`", "") for label, text in texts.items()}
    return {label: line for label, line in lines.items() if line}


def on_robustness(assessment: IndicatorAssessment) -> list[str]:
    """The limits of the robustness numbers."""
    sentences = []
    if any(one.mean_distance for one in assessment.robustness):
        sentences.append(ON_DISTANCE)
    if any(one.adversarial_risk for one in assessment.robustness):
        sentences.append(ON_ADVERSARIAL_RISK)
    return [*sentences, ON_MEASURES] if assessment.measures else sentences


def branch_names(tree: Indicator) -> dict[str, str]:
    """Path -> the branch's own name if it is unique, else its path."""
    names = [one.name for one in tree.walk()]
    return {
        one.path: "clean inputs" if one.path == _CLEAN else one.name if names.count(one.name) == 1 else one.path
        for one in tree.walk()
    }


def _worst_group(model: ModelRisk) -> tuple[str, Estimate] | None:
    """The class or stratum with the largest risk, of those whose interval lies above the overall risk."""
    groups = [(f"class {label}", one) for label, one in model.by_class.items() if one is not None]
    for name, of_value in model.by_stratum.items():
        groups += [(f"{name} = {value}", one) for value, one in of_value.items() if one is not None]
    clear = [(name, one) for name, one in groups if one.low > model.risk.value]
    return max(clear, key=lambda entry: entry[1].value) if clear else None
