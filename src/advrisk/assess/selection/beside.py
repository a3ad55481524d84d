"""Sentences that the executive summary adds to the answer of a run when several questions concern it."""

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.findings import Findings
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import EQUALLY, loss_interval, scenario_drivers, stated_results
from advrisk.assess.protocol import Finding
from advrisk.assess.selection.answer import leading
from advrisk.risk.indicators.tree import UNIFORM


def leading_first(findings: Findings) -> list[Finding]:
    """The answered questions in the order of the page, the one behind the answer first."""
    leads = "indicators" if findings.scenarios_stated and not findings.by_damage else "damage"
    return sorted(findings.answered, key=lambda one: one.name != leads)


def sentences_beside(findings: Findings) -> list[str]:
    """Whether a requirement is stated, and whether other questions name other models."""
    damage = findings.result(DamageAssessment)
    sentences = []
    if damage and "gate" not in findings.answers and not findings.view:
        sentences.append("The study states no requirement (gate), so nothing here says whether that is good enough.")
    sentences += _on_equal_corruptions(damage, findings.result(IndicatorAssessment))
    named = sorted({one for one in (leading(findings).least_bad, damage.least_bad if damage else None) if one})
    if len(named) > 1:
        sentences.append(
            f"These answers name different models ({', '.join(named)}), because the questions differ; the "
            "first answers the study's scenario."
        )
    return sentences


def _on_equal_corruptions(damage: DamageAssessment | None, indicators: IndicatorAssessment | None) -> list[str]:
    """A note if another model suffers least from corruptions, without a scenario that weighs these."""
    for one in indicators.results[:1] if indicators else ():
        best = one.least_bad, damage.least_bad if damage else None
        if one.scenario.name == UNIFORM and best[0] and best[1] and best[0] != best[1]:
            risks = {row.model: loss_interval(row.risk, one.bounds) for row in one.models}
            return [
                f"That is under attack. {EQUALLY}, {best[0]} has the least risk "
                f"({risks[best[0]]}, {best[1]} {risks[best[1]]}): state a scenario to say which matters."
            ]
    return []


def drivers_beside(findings: Findings) -> list[str]:
    """What drives the risk of the model that damage names, without a stated scenario."""
    damage, indicators = findings.result(DamageAssessment), findings.result(IndicatorAssessment)
    if indicators is None or stated_results(indicators):
        return []
    return scenario_drivers(indicators.results[0], damage.least_bad if damage else None)


def without_drivers(findings: Findings) -> str:
    """Why there is nothing on what drives the risk."""
    if findings.result(DamageAssessment) is None:
        return f"Not known: {findings.why_not('damage')}."
    return "No sample was broken."
