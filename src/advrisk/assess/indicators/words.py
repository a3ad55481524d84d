"""Key risk indicators in words: which model, how large its risk, what drives it, and what would decide."""

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
    "say how often an attack happens, and every mistake counts alike in it."
)
ON_MEASURES = (
    "CLEVER and its like estimate, from slopes around an input, how far it can be moved before it may be "
    "misclassified. They try no attack, they bound nothing, and they know no weather."
)
EQUALLY = "With all corruptions equally weighted"
_CONTRIBUTORS = 3
_CLEAN = "clean"
_LEADING = 3  # undecided pairs that are written out


def loss_kind(bounds: Bounds) -> Kind:
    """How a loss is written: one between 0 and 1 in per cent, any other as a number."""
    return "risk" if bounds == (0.0, 1.0) else "magnitude"


def loss_text(value: float, bounds: Bounds) -> str:
    """A loss in its unit."""
    return number_text(value, loss_kind(bounds))


def loss_interval(estimate: Estimate, bounds: Bounds) -> str:
    """`12.3 % [10.1, 14.9]`."""
    return estimate_text(estimate, loss_kind(bounds))


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
            return f"{EQUALLY}, {least} ({result.models[1].model} {beside})."
        return f"{least} ({result.models[1].model} {beside})."
    names = [best.model, *undecided_with(best.model, result.pairs)]
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


def full_headline(result: ScenarioResult) -> str:
    """The headline where nothing else names the scenario."""
    if result.scenario.name != UNIFORM:
        return in_scenario(result)
    said = risk_headline(result)
    return said if said.startswith(EQUALLY) else f"{EQUALLY}: {said}"


def on_result(result: ScenarioResult, samples_left: int | None = None) -> list[str]:
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
    sentences += [f"{text}." for text in _on_leading_pairs(result, samples_left)[:_LEADING]]
    n_undecided = sum(pair.undecided for pair in result.pairs)
    if n_undecided and len(result.pairs) > 1:
        are = "is" if n_undecided == 1 else "are"
        sentences.append(f"Of {len(result.pairs)} pairs of models, {n_undecided} {are} undecided.")
    return [*sentences, f"{counted(len(result.samples), 'sample')}."]


def _on_leading_pairs(result: ScenarioResult, samples_left: int | None) -> list[str]:
    """What would decide between the model with the least risk and others."""
    best = result.models[0].model
    pairs = [pair for pair in result.pairs if pair.undecided and best in (pair.lower, pair.higher)]
    return [f"{pair.lower} and {pair.higher}, {on_pair(pair, samples_left)}" for pair in pairs]


def label(result: ScenarioResult) -> str:
    """What tells its tables and figures from those of other results."""
    return f"{result.scenario.name}, {result.loss}"


# For the executive summary


def sureness(found: IndicatorAssessment) -> list[str]:
    """How sure the least risk is, in each scenario that was stated."""
    return [_on_least_risk(one) for one in stated_results(found)]


def _on_least_risk(result: ScenarioResult) -> str:
    best = result.models[0]
    often = best.probability_best
    beside = "" if often is None else f", least in {percent_text(often, 1)} of draws from its uncertainty"
    risk = f"{loss_interval(best.risk, result.bounds)} ({level_text(result.level)} interval)"
    return f"In the scenario {result.scenario.name}, {best.model}: risk {risk}{beside}."


def scenario_drivers(result: ScenarioResult, model: str | None = None) -> list[str]:
    """What the risk of a model comes from, by default that of the one with the least."""
    best = next((row for row in result.models if row.model == model), result.models[0])
    if best.risk.value <= 0:
        return []
    where = EQUALLY if result.scenario.name == UNIFORM else f"In the scenario {result.scenario.name}"
    worst = worst_off(result) if best is result.models[0] else ""
    beside = f" Worst off: {worst}." if worst else ""
    return [f"{where}, the risk of {best.model} comes from: {drivers(best)}.{beside}"]


def undecided(found: IndicatorAssessment) -> list[str]:
    """Between which models the scenarios leave it open, and what would decide."""
    told = [
        f"{one.scenario.name}: {text}."
        for one in stated_results(found)
        for text in _on_leading_pairs(one, found.samples_left)
    ]
    first = found.results[0]
    if first.scenario.name == UNIFORM and (n := sum(pair.undecided for pair in first.pairs)):
        told.append(f"{EQUALLY}, {n} of {counted(len(first.pairs), 'pair')} of models.")
    return told


# Pieces


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
    if better := ahead_of(model, compared.pairs):
        return f"more risk than {listed(better)}"
    equal = undecided_with(model, compared.pairs)
    return f"undecided against {listed(equal)}" if equal else compared.verdict(model)


def on_pair(pair: Pair, samples_left: int | None = None) -> str:
    """Whether the evidence decides between two models, and what would."""
    if not pair.undecided:
        return "decided"
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


def branch_names(tree: Indicator) -> dict[str, str]:
    """Path -> what the branch is called: by its own name where no other has it, else by its path."""
    names = [one.name for one in tree.walk()]
    return {
        one.path: "clean inputs" if one.path == _CLEAN else one.name if names.count(one.name) == 1 else one.path
        for one in tree.walk()
    }


def _worst_group(model: ModelRisk) -> tuple[str, Estimate] | None:
    """The class or value of a stratum with the largest risk, where its interval lies above the whole risk."""
    found = [(f"class {label}", one) for label, one in model.by_class.items() if one is not None]
    for name, of_value in model.by_stratum.items():
        found += [(f"{name} = {value}", one) for value, one in of_value.items() if one is not None]
    clear = [(name, one) for name, one in found if one.low > model.risk.value]
    return max(clear, key=lambda entry: entry[1].value) if clear else None
