"""What is said of damage beside its headline, and what its numbers are called."""

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

_GUESSED = 0.01  # a share of samples beyond the sizes asked about that is worth a word


def findings(assessment: DamageAssessment, *, pairs: bool = True) -> list[str]:
    """What a reader should know beside the headline; without `pairs` where every two models are shown anyway."""
    sentences = _on_relative_damage(assessment) if assessment.relative else _on_damage(assessment)
    bounds = "Robust accuracy is an upper bound" + ("" if assessment.relative else ", damage a lower one")
    sentences.append(
        f"{counted(len(assessment.distances.samples), 'sample')}, "
        f"{counted(len(assessment.distances.arms), 'attack configuration')}. "
        f"{bounds}: a better attack can only break more."
    )
    if assessment.targeted:
        sentences.append(
            "Broken means here that the model says the target class. Samples of that class itself cannot be broken; "
            "they are counted all the same."
        )
    if assessment.crafted_on:
        names = ", ".join(assessment.crafted_on)
        sentences.append(
            f"Transfer arms were crafted on {names}, whose own gradients they used there, while the other models met "
            "points made for another: the comparison favours those. Give the attacker a model of its own "
            "(`surrogate: true`), or leave those arms out (`--arm`)."
        )
    sentences += _on_pairs(assessment) if pairs else []
    if any(row.by_people for row in assessment.models):
        sentences.append(
            "“Unnoticed by people” is the share of samples, taken in random order, that were broken without the people "
            "who were shown them noticing."
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
        "Add or remove a model and the numbers change; they are no probabilities of an accident.",
    ]
    sentences += [
        f"Without {change.dropped}, the order of {change.lower} and {change.higher} turns round."
        for change in comparison.order_changes
    ]
    sentences += [
        f"The order of {lower} and {higher} depends on how equal distances are counted."
        for lower, higher in comparison.ties
    ]
    return sentences


def _on_damage(assessment: DamageAssessment) -> list[str]:
    """Of damage that is a probability."""
    best, asked = assessment.models[0], assessment.detector is assessment.comparison
    sentences = [
        f"An attack on {best.model}{behind(assessment)} does damage with a probability of "
        f"{estimate_text(best.damage, 'share')}: it succeeds, and nobody notices."
        + ("" if asked else " The interval carries the finite sample and, where the curve was fitted, its uncertainty.")
    ]
    if assessment.detector is not None:
        sentences += _on_detector(assessment, assessment.detector)
    if best.operational_risk is not None:
        risk = best.operational_risk
        sentences.append(
            f"At a cost of {assessment.cost:,.10g} for one damage, an attacked input of {best.model} costs "
            f"{estimate_text(risk, 'amount')} on average. "
            "How often inputs are attacked is for you to say."
        )
    guessed = {row.model: share for row in assessment.models if (share := row.extrapolated or 0.0) > _GUESSED}
    if guessed:
        shares = ", ".join(f"{model} {percent_text(share or 0)}" for model, share in guessed.items())
        sentences.append(
            f"Outside the sizes that the detector was asked about the evasion curve is a guess. That concerns these "
            f"shares of the samples: {shares}. Ask about smaller or larger perturbations, too."
        )
    return sentences


def _on_detector(assessment: DamageAssessment, found: MonteCarloDamage) -> list[str]:
    """Which detector stands in front, what it costs in false alarms, and how to read the numbers that come from it."""
    limits = sorted(set(found.thresholds.values()))
    above = f"{limits[0]:.4g}" if len(limits) == 1 else f"{limits[0]:.4g} to {limits[-1]:.4g}, by model"
    known = ((model, rate) for model, rate in found.false_alarms.items() if rate is not None)
    rates = [f"{model} {estimate_text(rate, 'share')}" for model, rate in known]
    sentences = [
        f"The detector {found.detector} raises an alarm above a score of {above}. False alarms at "
        f"correctly classified clean inputs: {', '.join(rates) or 'unknown'}.",
        "A sample is damaged if any success against it, of all arms, raises no alarm. An attacker who takes the "
        f"nearest success of every sample does no more (“of the nearest success alone”){_on_knowing(found)}",
        *_on_fitted_curve(assessment),
    ]
    apart = [row.model for row in assessment.models if row.by_detector and _apart(row.damage, row.by_detector.any_arm)]
    if apart:
        sentences.append(
            f"The given evasion curve and the detector disagree on {', '.join(apart)}: their intervals do not overlap. "
            "Verdicts and costs rest on the curve."
        )
    return sentences


def _on_fitted_curve(assessment: DamageAssessment) -> list[str]:
    """Whether the curve, which is fitted to answers about the nearest successes, gives the damage of these."""
    asked = {row.model: row.by_detector for row in assessment.models if row.by_detector and row.by_detector.by_curve}
    if len(asked) < len(assessment.models):
        return []
    off = [
        f"{model} ({percent_text(one.by_curve.value, 1)} against {estimate_text(one.monte_carlo, 'share')})"
        for model, one in asked.items()
        if one.by_curve and not one.monte_carlo.low <= one.by_curve.value <= one.monte_carlo.high
    ]
    if not off:
        return ["The curve that was fitted to its answers gives about the damage of the nearest success."]
    return [
        f"Warning: the curve that was fitted to its answers does not give the damage of the nearest success: "
        f"{'; '.join(off)}. Size alone does not say what this detector sees; do not use the curve for other models."
    ]


def behind(assessment: DamageAssessment) -> str:
    """` behind the detector confidence` where damage was asked of a detector; else empty."""
    if assessment.detector is None or assessment.detector is not assessment.comparison:
        return ""
    name = assessment.detector.detector
    return f" behind the detector {name.rpartition('@')[0] or name}"


def _on_knowing(found: MonteCarloDamage) -> str:
    """How much an attacker who knows the detector is a part of these numbers."""
    if not found.known_to:
        return "; one who knows the detector does more."
    know = "knows the detector and is" if len(found.known_to) == 1 else "know the detector and are"
    return f". {counted(len(found.known_to), 'arm')} {know} counted; a better one may do more still."


def _apart(a: Estimate | None, b: Estimate) -> bool:
    return a is not None and (a.high < b.low or b.high < a.low)


def _on_pairs(assessment: DamageAssessment) -> list[str]:
    """What would decide the pairs that the headline leaves open."""
    undecided = [pair for pair in assessment.pairs if pair.undecided]
    leading = [pair for pair in undecided if assessment.models[0].model in (pair.lower, pair.higher)]
    left = assessment.samples_left
    sentences = [f"{pair.lower} and {pair.higher} are undecided: {what_would_decide(pair, left)}." for pair in leading]
    if n_more := len(undecided) - len(leading):
        sentences.append(f"{counted(n_more, 'more pair')} of models {'is' if n_more == 1 else 'are'} undecided.")
    return sentences


def what_would_decide(pair: Pair, samples_left: int | None = None) -> str:
    """The samples that would, or why none will; `samples_left` are those that the data set still has, if known."""
    if pair.conflicts:
        return "; ".join(text.rstrip(".") for text in pair.conflicts)
    if pair.obstacles:
        return f"more samples alone may not decide: {'; '.join(text.rstrip('.') for text in pair.obstacles)}"
    if pair.more_samples is not None:
        return samples_that_decide(pair.more_samples, samples_left)
    if pair.difference.value == 0:
        return "no difference was seen, so the number of samples that would decide is unknown"
    return "more samples alone will not decide; ask the detector more"


def damage_kind(found: DamageAssessment) -> Kind:
    """How damage is written: relative damage is no share."""
    return "number" if found.relative else "share"


def damage_name(*, relative: bool) -> str:
    """What the number is called: only under an evasion curve is it a probability."""
    return "relative damage" if relative else "damage probability"


def share_name(found: DamageAssessment) -> str:
    """What the columns of a size are called: of a targeted attack there is no robust accuracy."""
    return "attack success rate" if found.targeted else "robust accuracy"


def shares_at(row: ModelDamage, found: DamageAssessment) -> Mapping[float, Estimate]:
    """Size -> the share that its column shows."""
    return row.success_ratio if found.targeted else row.robust_accuracy


def bound_text(found: DamageAssessment, eps: float) -> str:
    """`at most `, where no attack had this size."""
    return "" if eps not in found.untried else "at least " if found.targeted else "at most "


def size_columns(found: DamageAssessment) -> dict[str, float]:
    """The name of each column -> its size."""
    return {f"{share_name(found)} at {found.size_text(eps)}": eps for eps in found.thresholds}
