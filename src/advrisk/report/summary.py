"""The findings in plain words."""

from advrisk.core.names import counted
from advrisk.risk.assessment import DamageAssessment
from advrisk.risk.distances import Distances
from advrisk.risk.envelope import ArmComparison


def headline(assessment: DamageAssessment) -> str:
    """Which model to ship, or why the evidence does not say."""
    best = assessment.models[0]
    if best.relative_damage is None:
        return f"Only {best.model} was assessed: there is nothing to compare it with."
    if assessment.decided:
        return f"Ship {best.model}: it suffers the least damage of the {len(assessment.models)} models compared."
    return f"The evidence does not decide: {best.model} is {best.verdict}."


def findings(assessment: DamageAssessment) -> list[str]:
    """What a reader should know beside the headline."""
    n = len(assessment.distances.samples)
    sentences = []
    best = assessment.models[0]
    if best.relative_damage is not None and best.probability_best is not None:
        sentences.append(
            f"{best.model} has a relative damage of {best.relative_damage} and came out best in "
            f"{best.probability_best:.0%} of resampled evaluations."
        )
        sentences.append(
            "Relative damage compares these models on these samples under these attacks. "
            "Add or remove a model and the numbers change; they are no probabilities of an accident."
        )
    sentences.append(
        f"{counted(n, 'sample')}, {counted(len(assessment.distances.arms), 'attack configuration')}. "
        "Shares of broken samples are lower bounds: a better attack can only break more."
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
    if assessment.comparison is not None:
        sentences += [
            f"Without {change.dropped}, the order of {change.lower} and {change.higher} turns round."
            for change in assessment.comparison.order_changes
        ]
        sentences += [
            f"The order of {lower} and {higher} depends on how equal distances are counted."
            for lower, higher in assessment.comparison.ties
        ]
    return sentences + _left_out(assessment.distances)


def on_spare_arms(attacks: ArmComparison) -> list[str]:
    """Which arms could be dropped and what that saves, and what to know before doing so."""
    norm, n_arms = attacks.distances.norm, len(attacks.overall)
    sentences = []
    if not any(row.nearest for row in attacks.overall):
        sentences.append("No sample was broken by attack, so nothing can be said about the arms.")
    elif attacks.overall[0].optimality is None:
        sentences.append("Every success lies at the same distance, so optimality says nothing here.")
    if attacks.spare:
        sentences.append(
            f"{len(attacks.spare)} of {counted(n_arms, 'arm')} could be dropped together without changing any sample's "
            f"smallest {norm} distance{_saving(attacks)}: {', '.join(attacks.spare)}."
        )
        sentences.append("That holds for these models and samples. Another assessment may need those arms.")
    elif any(row.nearest for row in attacks.overall):
        sentences.append(f"No arm could be dropped without changing some sample's smallest {norm} distance.")
    if attacks.other_norms:
        sentences.append(
            f"Some of those were made for {', '.join(attacks.other_norms)}: compare them in that norm, too."
        )
    return sentences + _left_out(attacks.distances)


def _saving(attacks: ArmComparison) -> str:
    if not attacks.n_passes or attacks.n_passes_spare is None:
        return ""
    share = attacks.n_passes_spare / attacks.n_passes
    return f", which saves {attacks.n_passes_spare:,} of {attacks.n_passes:,} passes ({share:.0%})"


def _left_out(distances: Distances) -> list[str]:
    sentences = []
    if distances.n_unfinished:
        sentences.append(f"Not finished, and left out: {counted(distances.n_unfinished, 'sample')}.")
    if distances.n_without_verdict:
        sentences.append(
            f"Left out because an attack gave no verdict: {counted(distances.n_without_verdict, 'sample')}. "
            "An error is never counted as robust."
        )
    return sentences
