"""Sentences on damage below its headline, and the names of its numbers."""

from collections.abc import Mapping

from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage
from advrisk.assess.pairs import samples_that_decide
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.sections import Kind
from advrisk.core.values import estimate_text
from advrisk.risk.damage import DamageComparison
from advrisk.risk.decision import Pair
from advrisk.risk.monte_carlo import MonteCarloDamage

_EXTRAPOLATED = 0.01  # largest share of samples outside the tested sizes that needs no note


def findings(assessment: DamageAssessment, *, pairs: bool = True) -> list[str]:
    """Sentences below the headline; `pairs` is false where a table lists every pair."""
    sentences = _on_relative_damage(assessment) if assessment.relative else _on_damage(assessment)
    bounds = "Robust accuracy is an upper bound" + ("" if assessment.relative else ", damage a lower one")
    sentences.append(
        f"{counted(len(assessment.distances.samples), 'sample')}, "
        f"{counted(len(assessment.distances.arms), 'attack configuration')}. "
        f"{bounds}: a better attack can only break more."
    )
    if assessment.targeted:
        sentences.append(
            "Broken means that the model predicts the target class. Samples of that class cannot be broken, but they "
            "count."
        )
    if assessment.crafted_on:
        names = ", ".join(assessment.crafted_on)
        sentences.append(
            f"Transfer arms were crafted on {names} with its own gradients. The other models met points "
            "crafted for another model, so the comparison favours them. Give the attacker a model of its own "
            "(`surrogate: true`), or leave the transfer arms out (`--arm`)."
        )
    sentences += _on_pairs(assessment) if pairs else []
    if any(row.by_people for row in assessment.models):
        sentences.append(
            "“Unnoticed by people” is the share of samples, taken in random order, that an attack broke and that the "
            "people who labelled them did not notice."
        )
    return [*assessment.part, *sentences, *assessment.notes, *assessment.distances.left_out]


def _on_relative_damage(assessment: DamageAssessment) -> list[str]:
    best, comparison = assessment.models[0], assessment.comparison
    if not isinstance(comparison, DamageComparison):
        return []
    often = ""
    if assessment.decided and best.probability_best is not None:
        often = f" and came out best in {percent_text(best.probability_best, 1)} of resampled evaluations"
    sentences = [
        f"{best.model} has a relative damage of {best.relative_damage}{often}.",
        "Relative damage compares these models on these samples under these attacks. "
        "Add or remove a model and the numbers change; they are not probabilities of an accident.",
    ]
    sentences += [
        f"Without {change.dropped}, the order of {change.lower} and {change.higher} reverses."
        for change in comparison.order_changes
    ]
    sentences += [
        f"The order of {lower} and {higher} depends on how equal distances are counted."
        for lower, higher in comparison.ties
    ]
    return sentences


def _on_damage(assessment: DamageAssessment) -> list[str]:
    """Sentences on damage that is a probability."""
    best, from_scores = assessment.models[0], assessment.detector is assessment.comparison
    sentences = [
        f"An attack on {best.model}{behind(assessment)} does damage with a probability of "
        f"{estimate_text(best.damage, 'share')}: it succeeds and goes unnoticed."
        + (
            ""
            if from_scores
            else " The interval carries the finite sample and, where the curve was fitted, its uncertainty."
        )
    ]
    if assessment.detector is not None:
        sentences += _on_detector(assessment, assessment.detector)
    if best.operational_risk is not None:
        risk = best.operational_risk
        sentences.append(
            f"At a cost of {assessment.cost:,.10g} for one damage, an attacked input of {best.model} costs "
            f"{estimate_text(risk, 'amount')} on average. "
            "How often inputs are attacked depends on your deployment."
        )
    extrapolated = {row.model: share for row in assessment.models if (share := row.extrapolated or 0.0) > _EXTRAPOLATED}
    if extrapolated:
        shares = ", ".join(f"{model} {percent_text(share or 0)}" for model, share in extrapolated.items())
        sentences.append(
            f"Outside the sizes that the detector was asked about, the curve is extrapolated. This affects these "
            f"shares of the samples: {shares}. Ask about smaller or larger perturbations, too."
        )
    return sentences


def _on_detector(assessment: DamageAssessment, damage: MonteCarloDamage) -> list[str]:
    """Sentences on the detector, its false alarms, and how to read its numbers."""
    limits = sorted(set(damage.thresholds.values()))
    above = f"{limits[0]:.4g}" if len(limits) == 1 else f"{limits[0]:.4g} to {limits[-1]:.4g}, by model"
    rates_by_model = ((model, rate) for model, rate in damage.false_alarms.items() if rate is not None)
    rates = [f"{model} {estimate_text(rate, 'share')}" for model, rate in rates_by_model]
    sentences = [
        f"The detector {damage.detector} raises an alarm above a score of {above}. False alarms at "
        f"correctly classified clean inputs: {', '.join(rates) or 'unknown'}.",
        "A sample is damaged if any success against it, of all arms, raises no alarm. An attacker who takes the "
        f"nearest success of every sample does no more (“of the nearest success alone”){_on_knowing(damage)}",
        *_on_fitted_curve(assessment),
    ]
    apart = [row.model for row in assessment.models if row.by_detector and _apart(row.damage, row.by_detector.any_arm)]
    if apart:
        sentences.append(
            f"The given evasion curve and the detector disagree on {', '.join(apart)}: their intervals do not overlap. "
            "Verdicts and costs use the curve."
        )
    return sentences


def _on_fitted_curve(assessment: DamageAssessment) -> list[str]:
    """Whether the curve that is fitted to answers about the nearest successes reproduces their damage."""
    by_detector = {
        row.model: row.by_detector for row in assessment.models if row.by_detector and row.by_detector.by_curve
    }
    if len(by_detector) < len(assessment.models):
        return []
    off = [
        f"{model} ({percent_text(one.by_curve.value, 1)} against {estimate_text(one.monte_carlo, 'share')})"
        for model, one in by_detector.items()
        if one.by_curve and not one.monte_carlo.low <= one.by_curve.value <= one.monte_carlo.high
    ]
    if not off:
        return ["The curve that was fitted to its answers reproduces the damage of the nearest success."]
    return [
        f"Warning: the curve that was fitted to its answers does not reproduce the damage of the nearest success: "
        f"{'; '.join(off)}. Size alone does not predict what this detector detects; do not reuse the curve."
    ]


def behind(assessment: DamageAssessment) -> str:
    """` behind the detector confidence` if a detector's scores give the damage; else empty."""
    if assessment.detector is None or assessment.detector is not assessment.comparison:
        return ""
    name = assessment.detector.detector
    return f" behind the detector {name.rpartition('@')[0] or name}"


def _on_knowing(damage: MonteCarloDamage) -> str:
    """Whether these numbers include attackers who know the detector."""
    if not damage.known_to:
        return "; one who knows the detector does more."
    know = "knows the detector and is" if len(damage.known_to) == 1 else "know the detector and are"
    return f". {counted(len(damage.known_to), 'arm')} {know} counted; a better one may do more still."


def _apart(a: Estimate | None, b: Estimate) -> bool:
    return a is not None and (a.high < b.low or b.high < a.low)


def _on_pairs(assessment: DamageAssessment) -> list[str]:
    """What would decide the pairs that the headline leaves undecided."""
    undecided = [pair for pair in assessment.pairs if pair.undecided]
    leading = [pair for pair in undecided if assessment.models[0].model in (pair.lower, pair.higher)]
    left = assessment.samples_left
    sentences = [f"{pair.lower} and {pair.higher} are undecided: {what_would_decide(pair, left)}." for pair in leading]
    if n_more := len(undecided) - len(leading):
        sentences.append(f"{counted(n_more, 'more pair')} of models {'is' if n_more == 1 else 'are'} undecided.")
    return sentences


def what_would_decide(pair: Pair, samples_left: int | None = None) -> str:
    """The number of samples that would decide a pair, or why none will; `samples_left` is None if unknown."""
    if pair.conflicts:
        return "; ".join(text.rstrip(".") for text in pair.conflicts)
    if pair.obstacles:
        return f"more samples alone may not decide: {'; '.join(text.rstrip('.') for text in pair.obstacles)}"
    if pair.more_samples is not None:
        return samples_that_decide(pair.more_samples, samples_left)
    if pair.difference.value == 0:
        return "the difference is 0, so the number of samples that would decide is unknown"
    return "more samples alone will not decide; collect more answers for the evasion curve"


def damage_kind(assessment: DamageAssessment) -> Kind:
    """The format of damage: relative damage is not a share."""
    return "number" if assessment.relative else "share"


def damage_name(*, relative: bool) -> str:
    """The name of the number: it is a probability only under an evasion curve or with a detector."""
    return "relative damage" if relative else "damage probability"


def share_name(assessment: DamageAssessment) -> str:
    """The name of the share at a size: a targeted attack has no robust accuracy."""
    return "attack success rate" if assessment.targeted else "robust accuracy"


def shares_at(row: ModelDamage, assessment: DamageAssessment) -> Mapping[float, Estimate]:
    """Size -> the share named by `share_name`."""
    return row.success_ratio if assessment.targeted else row.robust_accuracy


def bound_text(assessment: DamageAssessment, eps: float) -> str:
    """`at most ` if no attack had this size; else empty."""
    return "" if eps not in assessment.untried else "at least " if assessment.targeted else "at most "


def size_columns(assessment: DamageAssessment) -> dict[str, float]:
    """The name of each column -> its size."""
    return {f"{share_name(assessment)} at {assessment.size_text(eps)}": eps for eps in assessment.thresholds}
