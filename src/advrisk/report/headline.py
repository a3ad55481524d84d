"""The first sentence: the least bad of the compared models, how bad it is, and whether it meets what is required."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage
from advrisk.assess.gate.records import GateResult, Held
from advrisk.assess.indicators.words import in_scenario, loss_text
from advrisk.core.errors import StudyError
from advrisk.core.estimate import Estimate
from advrisk.core.names import listed
from advrisk.core.numbers import percent_text
from advrisk.report.summary import behind, damage_name, what_would_decide
from advrisk.risk.decision import Pair, alike
from advrisk.risk.evasion import ThresholdEvasion
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.risk.paired_share import share_difference
from advrisk.study import Requirement, parse_requirement

Requirements = Literal["met", "not met", "undecided", "not checked"]

_OPENINGS = ("A trade-off", "Undecided between ", "Only ", "No model is named ", "In the scenario ", "The scenarios ")
_MODELS = 3  # whose numbers an undecided headline gives


def by_damage(found: DamageAssessment) -> str:
    """The headline of damage where another question leads."""
    return f"By damage: {_within(headline(found))}"


def headline(found: DamageAssessment, gate: GateResult | str = "") -> str:
    """The least bad model and how bad it is, or why the evidence names none; with what the gate says of it."""
    models = [row.model for row in found.models]
    among = [found.models[0].model, *alike(found.models[0].model, found.pairs)]
    return with_requirements(_by_damage(found), found.least_bad or _only(models), models, gate, among=among)


def scenario_headline(
    result: ScenarioResult, damage: DamageAssessment | None = None, gate: GateResult | str = ""
) -> str:
    """The model with the least risk in a scenario, and how bad it is under attack and on clean inputs."""
    models = [row.model for row in result.models]
    named = result.least_bad or _only(models)
    row = damage.of(named) if damage and named else None
    beside = f"; {how_bad(row, damage)}" if row and damage else ""
    said = f"{in_scenario(result).rstrip('.')}{beside}"
    among = [models[0], *alike(models[0], result.pairs)]
    return with_requirements(said, named, models, gate, among=among)


def disagreement(results: Sequence[ScenarioResult], gate: GateResult | str = "") -> str:
    """Which model each scenario favours, where they do not all name the same."""
    named = {one.least_bad for one in results} - {None}
    opening = "The scenarios disagree" if len(named) > 1 else "The scenarios do not settle on one model"
    each = [f"{one.scenario.name} {_favours(one)}" for one in results]
    return with_requirements(f"{opening}: {', '.join(each)}", None, [row.model for row in results[0].models], gate)


def _favours(result: ScenarioResult) -> str:
    best = result.models[0]
    if result.least_bad is not None:
        return f"favours {best.model} (risk {loss_text(best.risk.value, result.bounds)})"
    return f"is undecided between {listed([best.model, *alike(best.model, result.pairs)])}"


def _by_damage(found: DamageAssessment) -> str:
    best, n = found.models[0], len(found.models)
    if n == 1:
        absolute = _absolute(best, found)
        return (
            f"Only {best.model} {'was asked for' if found.part else 'was assessed'}: {absolute}{how_bad(best, found)}"
        )
    if not found.decided:
        return _undecided(found)
    absolute = _absolute(best, found)
    loss = best.clean_loss
    if loss is not None and loss.low > 0:
        return (
            f"A trade-off: of {n} models {best.model} is the least bad under attack "
            f"({absolute}{_under_attack(best, found)}), but gives up {_points(loss.value)} of clean accuracy against "
            f"{found.best_clean} ({_clean_pair(best, found.of(found.best_clean or ''))}){_other_side(found)}"
        )
    return f"{best.model} is the least bad of {n} models: {absolute}{how_bad(best, found)}"


def _absolute(row: ModelDamage, found: DamageAssessment) -> str:
    """`damage probability 20.0 % behind the detector confidence, `; empty of relative damage."""
    if row.damage is None:
        return ""
    return f"damage probability {_least(found)}{_share(row.damage)}{behind(found)}, "


def _least(found: DamageAssessment) -> str:
    """`at least `, where no attack had the size up to which everything goes unnoticed."""
    return "at least " if isinstance(found.curve, ThresholdEvasion) and found.curve.tau in found.untried else ""


def _other_side(found: DamageAssessment) -> str:
    """What the best clean model has under attack at the largest size, where that can be said."""
    row = found.of(found.best_clean or "")
    if row is None or not found.thresholds:
        return ""
    eps = found.thresholds[-1]
    share = f"{_bound(found, eps)}{_share(shares_at(row, found)[eps])}"
    return f", whose {share_name(found)} is {share} at {_size(found, eps)}"


def _undecided(found: DamageAssessment) -> str:
    best = found.models[0]
    if found.distances.too_few:
        return f"No model is named yet, {best.verdict}"
    open_ones = [pair for pair in found.pairs if pair.undecided and best.model in (pair.lower, pair.higher)]
    names = [best.model, *alike(best.model, found.pairs)]
    if conflicts := list(dict.fromkeys(text for pair in open_ones for text in pair.conflicts)):
        return f"Undecided between {listed(names)}: {conflicts[0].rstrip('.')}"
    rows = [row for row in found.models if row.model in names][:_MODELS]
    if len(names) == 2 and (said := _open_trade_off(rows, found)):
        return said
    return f"Undecided between {listed(names)}: {_side_by_side(rows, found)}{_to_decide(open_ones, found)}"


def _open_trade_off(rows: Sequence[ModelDamage], found: DamageAssessment) -> str:
    """Of two models that damage does not tell apart: one is better under attack, the other clean; else empty."""
    hardy = next((row for row in rows if row.clean_loss is not None and row.clean_loss.low > 0), None)
    clean = next((row for row in rows if row.model == found.best_clean), None)
    if hardy is None or clean is None:
        return ""
    tried = [eps for eps in found.thresholds if eps not in found.untried]
    for eps in () if found.targeted else reversed(tried):
        held, other = (found.distances.by_model[row.model] > eps for row in (hardy, clean))
        gain = share_difference(int((held & ~other).sum()), int((other & ~held).sum()), len(held), level=found.level)
        if gain.low > 0:
            shares = (row.robust_accuracy[eps] for row in (hardy, clean))
            damage = " against ".join(_share(row.damage) for row in (hardy, clean) if row.damage is not None)
            beside = f" (damage probability {_least(found)}{damage})" if damage else ""
            return (
                f"A trade-off that damage does not decide{beside}: {hardy.model} is better under attack "
                f"(robust accuracy at {found.size_text(eps)} {' against '.join(map(_share, shares))}), "
                f"{clean.model} on clean inputs ({_clean_pair(clean, hardy)})"
            )
    return ""


def _to_decide(pairs: Sequence[Pair], found: DamageAssessment) -> str:
    return f"; {what_would_decide(pairs[0], found.samples_left)}" if len(pairs) == 1 else ""


def _side_by_side(rows: Sequence[ModelDamage], found: DamageAssessment) -> str:
    """`robust accuracy at 8/255 20.0 % and 22.0 %, clean accuracy 80.0 % and 78.0 %`; damage, too, if it is absolute
    or nothing else says how the models fare under attack."""
    damage = [row.ranked_by for row in rows if row.ranked_by is not None]
    parts = []
    if damage and not (found.relative and found.thresholds):
        shown = [f"{one.value:.3f}" if found.relative else _share(one) for one in damage]
        parts.append(f"{damage_name(relative=found.relative)} {_least(found)}{listed(shown)}")
    parts += [
        f"{share_name(found)} at {_size(found, eps)} {_bound(found, eps)}"
        f"{_each(shares_at(row, found)[eps] for row in rows)}"
        for eps in found.thresholds
    ]
    clean = [row.clean_accuracy for row in rows if row.clean_accuracy is not None]
    parts += [f"clean accuracy {_each(clean)}"] if len(clean) == len(rows) else []
    return ", ".join(parts) or "no difference that these samples show"


def how_bad(row: ModelDamage, found: DamageAssessment) -> str:
    """`robust accuracy 95.4 % at 0.1, 46.6 % at 0.2; clean accuracy 97.4 %, 0.2 points below plain`."""
    clean = _on_clean(row, found)
    return "; ".join([_under_attack(row, found), *([clean] if clean else [])])


def _under_attack(row: ModelDamage, found: DamageAssessment) -> str:
    if found.thresholds:
        shares = shares_at(row, found)
        at = [f"{_bound(found, eps)}{_share(shares[eps])} at {_size(found, eps)}" for eps in found.thresholds]
        return f"{share_name(found)} {', '.join(at)}"
    if row.mean_size is None:
        return "no attack broke a sample that was correct"
    return f"mean adversarial distance {row.mean_size.value:.3g} ({found.distances.norm})"


def _bound(found: DamageAssessment, eps: float) -> str:
    """`at most `, where no attack had this size."""
    return "" if eps not in found.untried else "at least " if found.targeted else "at most "


def _size(found: DamageAssessment, eps: float) -> str:
    return found.size_text(eps) + (" (no attack had this size)" if eps in found.untried else "")


def share_name(found: DamageAssessment) -> str:
    """What the columns of a size are called: of a targeted attack there is no robust accuracy."""
    return "attack success rate" if found.targeted else "robust accuracy"


def shares_at(row: ModelDamage, found: DamageAssessment) -> Mapping[float, Estimate]:
    """Size -> the share that its column shows."""
    return row.success_ratio if found.targeted else row.robust_accuracy


def size_columns(found: DamageAssessment) -> dict[str, float]:
    """The name of each column -> its size."""
    return {f"{share_name(found)} at {found.size_text(eps)}": eps for eps in found.thresholds}


def _on_clean(row: ModelDamage, found: DamageAssessment) -> str:
    if row.clean_accuracy is None:
        return ""
    best = None if found.best_clean is None else found.of(found.best_clean)
    gap = 0.0 if best is None or best.clean_accuracy is None else best.clean_accuracy.value - row.clean_accuracy.value
    text = f"clean accuracy {_share(row.clean_accuracy)}"
    if len(found.models) == 1:
        return text
    if best is None or gap <= 0:
        return f"{text}, the highest of these"
    sure = row.clean_loss is not None and row.clean_loss.low > 0
    return f"{text}, {_points(gap)} below {best.model}{'' if sure else ' (within chance)'}"


def _clean_pair(row: ModelDamage, other: ModelDamage | None) -> str:
    pair = (row.clean_accuracy, other.clean_accuracy if other else None)
    return " against ".join("unknown" if one is None else _share(one) for one in pair)


# Requirements


@dataclass(frozen=True)
class _Checked:
    """A requirement of a model; `rule` is the same for all models."""

    rule: str
    model: str | None  # None: it is of no model
    held: Held


def requirements_of(named: str | None, models: Sequence[str], gate: GateResult | str) -> Requirements | None:
    """Whether the named model meets what is required of it, and of no model; None where nothing is.

    Text in place of a gate says why it was not checked; empty, that none is stated. Where no model is named: whether
    every requirement is met, or none of the models meets its own.
    """
    if isinstance(gate, str):
        return "not checked" if gate else None
    checked = [_checked(one) for one in gate.results]
    if not checked:
        return None
    if (named := named or _only(models)) is not None:
        return _met([one for one in checked if one.model in (named, None)])
    each = {_met([one for one in checked if one.model in (model, None)]) for model in models}
    return each.pop() if len(each) == 1 else "met" if each == {"met", None} else "undecided"


def _met(checked: Sequence[_Checked]) -> Requirements | None:
    verdicts = {one.held.verdict for one in checked}
    if not verdicts:
        return None
    return "not met" if "fail" in verdicts else "undecided" if "undecided" in verdicts else "met"


def with_requirements(
    said: str, named: str | None, models: Sequence[str], gate: GateResult | str, *, among: Sequence[str] = ()
) -> str:
    """The sentence with what the gate says of the named model, and of all of them.

    Where none is named, it is said of those `among` which the evidence does not decide (default: all).
    """
    if isinstance(gate, str):
        return f"{said}; what the study requires (gate) is not checked: {gate.rstrip('.')}." if gate else f"{said}."
    checked = [_checked(one) for one in gate.results]
    if not checked:
        return f"{said}."
    failed = [one for one in checked if one.held.verdict == "fail"]
    unmet = [
        rule
        for rule in dict.fromkeys(one.rule for one in failed)
        if {one.model for one in failed if one.rule == rule} >= set(models)
    ]
    if unmet and len(models) > 1:
        return f"None of these {len(models)} models meets {' or '.join(unmet)}; {_within(said)}."
    if len(models) > 1 and {one.model for one in failed} >= set(models):
        each = listed([f"{model} fails {_rules([one for one in failed if one.model == model])}" for model in models])
        return f"None of these {len(models)} models meets every stated requirement ({each}); {_within(said)}."
    own = [one for one in failed if named is not None and one.model in (named, None)]
    if own:
        return f"{said}; {named} fails {_rules(own)}{_who_passes(checked, models, named)}."
    if named is None:
        return f"{said}; {_states(checked, among or models)}."
    if failed:
        return f"{said}; {_state(checked, named)}{_each_of(failed, 'fails')}."
    return f"{said}; {_state(checked, named).removesuffix(', ')}."


def _within(said: str) -> str:
    """A sentence that goes on after a semicolon, unless it begins with the name of a model."""
    return said[0].lower() + said[1:] if said.startswith(_OPENINGS) else said


def _each_of(checked: Sequence[_Checked], verb: str) -> str:
    """`std fails clean accuracy >= 65 % and adv fails …`."""
    return listed([f"{one.model or 'the run'} {verb} {one.rule}" for one in checked])


def _states(checked: Sequence[_Checked], among: Sequence[str]) -> str:
    """`undecided whether cnn-adv meets clean accuracy >= 65 %`: of models of which none is named."""
    failed = [one for one in checked if one.held.verdict == "fail"]
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
        and all(one.held.verdict == "pass" for one in checked if one.model in (model, None))
    ]
    return f", {listed(passing)} meet{'s' if len(passing) == 1 else ''} every stated requirement" if passing else ""


def _open(checked: Iterable[_Checked]) -> list[_Checked]:
    return [one for one in checked if one.held.verdict == "undecided"]


def _rules(checked: Sequence[_Checked]) -> str:
    return listed(list(dict.fromkeys(one.rule for one in checked)))


def _checked(held: Held) -> _Checked:
    try:
        requirement = parse_requirement(held.requirement)
    except StudyError:
        return _Checked(held.requirement, None, held)
    return _Checked(_rule(requirement), _model(requirement), held)


def _model(requirement: Requirement) -> str | None:
    left = requirement.left
    return (left.inside[0] if left.inside else None) if left.what.of == "detector" else left.subject


def _rule(requirement: Requirement) -> str:
    """`robust accuracy at 8/255 >= 50 %`: without the model."""
    left = requirement.left
    plain = replace(left, inside=()) if left.what.of == "detector" else replace(left, subject=None)
    return str(replace(requirement, left=plain)).replace("_", " ", 1 if "_" in left.quantity else 0)


# Numbers


def _share(estimate: Estimate) -> str:
    return percent_text(estimate.value, 1)


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _each(estimates: Iterable[Estimate]) -> str:
    return listed([_share(one) for one in estimates])


def _only(models: Sequence[str]) -> str | None:
    return models[0] if len(models) == 1 else None
