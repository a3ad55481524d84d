"""What the executive summary adds to the answer of a run where several questions bear on it."""

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.findings import Findings
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import EQUALLY, loss_interval, scenario_drivers, stated_results
from advrisk.assess.protocol import Finding
from advrisk.assess.selection.answer import leading
from advrisk.risk.indicators.tree import UNIFORM


def leading_first(found: Findings) -> list[Finding]:
    """The answered questions in the order of the page, but first the one that the answer is of."""
    leads = "indicators" if found.scenarios_stated and not found.by_damage else "damage"
    return sorted(found.answered, key=lambda one: one.name != leads)


def sentences_beside(found: Findings) -> list[str]:
    """Whether a requirement is stated, and whether other questions name other models."""
    damage = found.result(DamageAssessment)
    told = []
    if damage and "gate" not in found.answers and not found.view:
        told.append("The study states no requirement (gate), so nothing here says whether that is good enough.")
    told += _on_equal_corruptions(damage, found.result(IndicatorAssessment))
    named = sorted({one for one in (leading(found).least_bad, damage.least_bad if damage else None) if one})
    if len(named) > 1:
        told.append(
            f"These answers name different models ({', '.join(named)}), because the questions differ; the "
            "first answers the study's scenario."
        )
    return told


def _on_equal_corruptions(damage: DamageAssessment | None, found: IndicatorAssessment | None) -> list[str]:
    """Another model suffers least from corruptions, and no scenario says how much these matter."""
    for one in found.results[:1] if found else ():
        best = one.least_bad, damage.least_bad if damage else None
        if one.scenario.name == UNIFORM and best[0] and best[1] and best[0] != best[1]:
            risks = {row.model: loss_interval(row.risk, one.bounds) for row in one.models}
            return [
                f"That is under attack. {EQUALLY}, {best[0]} has the least risk "
                f"({risks[best[0]]}, {best[1]} {risks[best[1]]}): state a scenario to say which matters."
            ]
    return []


def drivers_beside(found: Findings) -> list[str]:
    """What the risk of the model that damage names comes from, where no scenario is stated."""
    damage, indicators = found.result(DamageAssessment), found.result(IndicatorAssessment)
    if indicators is None or stated_results(indicators):
        return []
    return scenario_drivers(indicators.results[0], damage.least_bad if damage else None)


def without_drivers(found: Findings) -> str:
    """Why nothing is said of what drives the risk."""
    if found.result(DamageAssessment) is None:
        return f"Not known: {found.why_not('damage')}."
    return "No sample was broken."
