"""The first sentence: the least bad of the compared models, its numbers, and whether it meets the requirements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.headline import headline, how_bad, least_bad_words
from advrisk.assess.gate.records import GateResult, RequirementResult
from advrisk.assess.indicators.words import in_scenario, loss_text
from advrisk.core.errors import StudyError
from advrisk.core.names import listed
from advrisk.core.sections import Unanswered
from advrisk.risk.decision import undecided_with
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.study import Requirement, parse_requirement

Requirements = Literal["met", "not met", "undecided", "not checked"]
Gate = GateResult | Unanswered | None  # checked, not checked for a reason, or none is stated

_OPENINGS = (
    "A trade-off",
    "Undecided between ",
    "Only ",
    "No model is named ",
    "In the scenario ",
    "The scenario ",
    "The scenarios ",
)


def by_damage(damage: DamageAssessment) -> str:
    """The headline of damage if another question comes first."""
    return f"By damage: {_within(headline(damage))}"


def damage_headline(damage: DamageAssessment, gate: Gate) -> str:
    """The headline of damage, with what the gate says of the least bad model."""
    models = [row.model for row in damage.models]
    among = [damage.models[0].model, *undecided_with(damage.models[0].model, damage.pairs)]
    return with_requirements(least_bad_words(damage), damage.least_bad or _only(models), models, gate, among=among)


def scenario_headline(result: ScenarioResult, damage: DamageAssessment | None = None, gate: Gate = None) -> str:
    """The model with the least risk in a scenario, and how bad it is under attack and on clean inputs."""
    models = [row.model for row in result.models]
    named = result.least_bad or _only(models)
    row = damage.of(named) if damage and named else None
    beside = f"; {how_bad(row, damage)}" if row and damage else ""
    sentence = f"{in_scenario(result).rstrip('.')}{beside}"
    among = [models[0], *undecided_with(models[0], result.pairs)]
    return with_requirements(sentence, named, models, gate, among=among)


def disagreement(results: Sequence[ScenarioResult], gate: Gate = None) -> str:
    """The model that each scenario favours, if they disagree."""
    named = {one.least_bad for one in results} - {None}
    opening = "The scenarios disagree" if len(named) > 1 else "The scenarios do not settle on one model"
    each = [f"{one.scenario.name} {_favours(one)}" for one in results]
    return with_requirements(f"{opening}: {', '.join(each)}", None, [row.model for row in results[0].models], gate)


def without_answer(reasons: Mapping[str, str]) -> str:
    """Which scenarios have no answer, and why the first has none."""
    names, (reason, *_) = list(reasons), list(reasons.values())
    opening = f"The scenario {names[0]} has" if len(names) == 1 else f"The scenarios {listed(names)} have"
    return f"{opening} no answer, so no model is named: {reason.rstrip('.')}"


def _favours(result: ScenarioResult) -> str:
    best = result.models[0]
    if result.least_bad is not None:
        return f"favours {best.model} (risk {loss_text(best.risk.value, result.bounds)})"
    return f"is undecided between {listed([best.model, *undecided_with(best.model, result.pairs)])}"


# Requirements


@dataclass(frozen=True)
class _Checked:
    """A requirement of a model; `rule` is the same for all models."""

    rule: str
    model: str | None  # None: it is of no model
    result: RequirementResult


def requirements_of(named: str | None, models: Sequence[str], gate: Gate) -> Requirements | None:
    """Whether the named model meets its requirements and those of no model; None without requirements.

    Without a named model: whether every requirement is met, or no model meets its own.
    """
    if gate is None or isinstance(gate, Unanswered):
        return None if gate is None else "not checked"
    checked = [_checked(one) for one in gate.results]
    if not checked:
        return None
    if (named := named or _only(models)) is not None:
        return _met([one for one in checked if one.model in (named, None)])
    each = {_met([one for one in checked if one.model in (model, None)]) for model in models}
    return each.pop() if len(each) == 1 else "met" if each == {"met", None} else "undecided"


def _met(checked: Sequence[_Checked]) -> Requirements | None:
    verdicts = {one.result.verdict for one in checked}
    if not verdicts:
        return None
    return "not met" if "fail" in verdicts else "undecided" if "undecided" in verdicts else "met"


def with_requirements(
    sentence: str, named: str | None, models: Sequence[str], gate: Gate, *, among: Sequence[str] = ()
) -> str:
    """The sentence with the result of the gate for the named model, or for all.

    Without a named model, the result covers the undecided models `among` (default: all).
    """
    if gate is None:
        return f"{sentence}."
    if isinstance(gate, Unanswered):
        return f"{sentence}; what the study requires (gate) is not checked: {str(gate).rstrip('.')}."
    checked = [_checked(one) for one in gate.results]
    if not checked:
        return f"{sentence}."
    failed = [one for one in checked if one.result.verdict == "fail"]
    unmet = [
        rule
        for rule in dict.fromkeys(one.rule for one in failed)
        if {one.model for one in failed if one.rule == rule} >= set(models)
    ]
    if unmet and len(models) > 1:
        return f"None of these {len(models)} models meets {' or '.join(unmet)}; {_within(sentence)}."
    if len(models) > 1 and {one.model for one in failed} >= set(models):
        each = listed([f"{model} fails {_rules([one for one in failed if one.model == model])}" for model in models])
        return f"None of these {len(models)} models meets every stated requirement ({each}); {_within(sentence)}."
    own = [one for one in failed if named is not None and one.model in (named, None)]
    if own:
        return f"{sentence}; {named} fails {_rules(own)}{_who_passes(checked, models, named)}."
    if named is None:
        return f"{sentence}; {_states(checked, among or models)}."
    if failed:
        return f"{sentence}; {_state(checked, named)}{_each_of(failed, 'fails')}."
    return f"{sentence}; {_state(checked, named).removesuffix(', ')}."


def _within(sentence: str) -> str:
    """A sentence for use after a colon or semicolon: in lower case, unless it begins with the name of a model."""
    return sentence[0].lower() + sentence[1:] if sentence.startswith(_OPENINGS) else sentence


def _each_of(checked: Sequence[_Checked], verb: str) -> str:
    """`std fails clean accuracy >= 65 % and adv fails …`."""
    return listed([f"{one.model or 'the run'} {verb} {one.rule}" for one in checked])


def _states(checked: Sequence[_Checked], among: Sequence[str]) -> str:
    """`undecided whether cnn-adv meets clean accuracy >= 65 %`: of models of which none is named."""
    failed = [one for one in checked if one.result.verdict == "fail"]
    unclear = _open(checked)
    states = [_each_of(failed, "fails")] if failed else []
    states += [f"undecided whether {_each_of(unclear, 'meets')}"] if unclear else []
    if states:
        return ", ".join(states)
    stated = {one.model for one in checked}
    meeting = [model for model in among if model in stated or None in stated]
    if len(meeting) == len(among):
        return "every stated requirement is met"
    without = listed([model for model in among if model not in meeting])
    if not meeting:
        return f"no requirement is stated for {without}"
    meet = f"meet{'s' if len(meeting) == 1 else ''}"
    return f"{listed(meeting)} {meet} every stated requirement, none is stated for {without}"


def _state(checked: Sequence[_Checked], named: str) -> str:
    """`trades meets every stated requirement, `: of a model that fails none."""
    own = [one for one in checked if one.model in (named, None)]
    if not own:
        return f"no requirement is stated for {named}, "
    if unclear := _open(own):
        return f"undecided whether {named} meets {_rules(unclear)}, "
    return f"{named} meets every stated requirement, "


def _who_passes(checked: Sequence[_Checked], models: Sequence[str], named: str | None) -> str:
    """Another model that meets all that is required of it, where the named one does not."""
    stated = {one.model for one in checked}
    passing = [
        model
        for model in models
        if model != named
        and model in stated
        and all(one.result.verdict == "pass" for one in checked if one.model in (model, None))
    ]
    return f", {listed(passing)} meet{'s' if len(passing) == 1 else ''} every stated requirement" if passing else ""


def _open(checked: Iterable[_Checked]) -> list[_Checked]:
    return [one for one in checked if one.result.verdict == "undecided"]


def _rules(checked: Sequence[_Checked]) -> str:
    return listed(list(dict.fromkeys(one.rule for one in checked)))


def _checked(result: RequirementResult) -> _Checked:
    try:
        requirement = parse_requirement(result.requirement)
    except StudyError:
        return _Checked(result.requirement, None, result)
    return _Checked(_rule(requirement), _model(requirement), result)


def _model(requirement: Requirement) -> str | None:
    left = requirement.left
    return (left.inside[0] if left.inside else None) if left.what.of == "detector" else left.subject


def _rule(requirement: Requirement) -> str:
    """`robust accuracy at 8/255 >= 50 %`: without the model."""
    left = requirement.left
    plain = replace(left, inside=()) if left.what.of == "detector" else replace(left, subject=None)
    return str(replace(requirement, left=plain)).replace("_", " ", 1 if "_" in left.quantity else 0)


def _only(models: Sequence[str]) -> str | None:
    return models[0] if len(models) == 1 else None
