"""The findings in plain words."""

from advrisk.core.names import counted
from advrisk.risk.assessment import DamageAssessment


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
    if assessment.comparison is not None:
        sentences += [
            f"Without {change.dropped}, the order of {change.lower} and {change.higher} turns round."
            for change in assessment.comparison.order_changes
        ]
        sentences += [
            f"The order of {lower} and {higher} depends on how equal distances are counted."
            for lower, higher in assessment.comparison.ties
        ]
    return sentences + _left_out(assessment)


def _left_out(assessment: DamageAssessment) -> list[str]:
    sentences = []
    if assessment.distances.n_unfinished:
        sentences.append(f"Not finished, and left out: {counted(assessment.distances.n_unfinished, 'sample')}.")
    if assessment.distances.n_without_verdict:
        sentences.append(
            f"Left out because an attack gave no verdict: {counted(assessment.distances.n_without_verdict, 'sample')}. "
            "An error is never counted as robust."
        )
    return sentences
