"""The answer of a run: the least bad model, whether it may be shipped, and the sentences on that.

Terminal, report, JSON and Python all use this answer, so that they agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.findings import Findings
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import stated_results
from advrisk.assess.selection.headline import (
    Gate,
    Requirements,
    by_damage,
    damage_headline,
    disagreement,
    requirements_of,
    scenario_headline,
    with_requirements,
    without_answer,
)
from advrisk.core.plain import InJson
from advrisk.core.sections import Unanswered, result_of, why_not
from advrisk.risk.indicators.comparison import ScenarioResult


@dataclass(frozen=True)
class RunAnswer:
    """The model that the evidence names, and the sentences on it."""

    sentences: tuple[str, ...]
    least_bad: str | None  # None: undecided, the scenarios disagree, or nothing to compare
    requirements: Requirements | None  # of the least bad model; None: none is stated
    n_models: int
    unfinished: bool = False
    unanswered: bool = False  # a scenario of the study has no answer

    in_json: ClassVar[InJson] = {
        "sentences": "headlines",
        **dict.fromkeys(("n_models", "unfinished", "unanswered")),
        **{name: name for name in ("headline", "ship", "decided")},
    }

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.sentences[0]

    @property
    def decided(self) -> bool:
        """Whether the evidence of a finished run names one model."""
        return self.least_bad is not None and not self.unfinished

    @property
    def ship(self) -> str | None:
        """The least bad model, if the run is done and the model meets its requirements."""
        return self.least_bad if self.decided and self.requirements in (None, "met") else None

    @property
    def exit_code(self) -> Literal[0, 1, 4]:
        """Of `advrisk select`; the first of these that applies:

        the run is not finished, or one of its scenarios has no answer: 4; a requirement is not met: 1; whether it is
        met is undecided or was not checked: 4; a model is named, or there is only one: 0; else 4.
        """
        if self.unfinished or self.unanswered:
            return 4
        if self.requirements == "not met":
            return 1
        if self.requirements not in (None, "met"):
            return 4
        return 0 if self.decided or self.n_models == 1 else 4


def answer(
    damage: DamageAssessment | Unanswered,
    scenarios: Sequence[ScenarioResult] = (),
    gate: Gate = None,
    *,
    lost: str = "",
    left_out: Mapping[str, str] | None = None,
    unfinished: str = "",
) -> RunAnswer:
    """Compose the answer: the scenarios first, then damage; the first sentence includes the requirements.

    `lost` is the reason why stated scenarios have no result, `left_out` why some of them have none, `unfinished` the
    progress of an unfinished run. No model is named while a stated scenario has no result.
    """
    assessed = result_of(damage)
    models = [row.model for row in (scenarios[0].models if scenarios else assessed.models if assessed else ())]
    named, sentences = _of_scenarios(scenarios, assessed, None if left_out else gate) if scenarios else (None, [])
    if left_out:
        named, sentences = None, [with_requirements(without_answer(left_out), None, models, gate), *sentences]
    if lost:
        sentences = [with_requirements(f"The study's scenarios have no answer: {lost}", None, models, gate)]
    elif not scenarios and assessed is not None:
        named, sentences = assessed.least_bad, [damage_headline(assessed, gate)]
    elif not scenarios:
        sentences = [
            with_requirements(f"The evidence names no model: {why_not(damage).rstrip('.')}", None, models, gate)
        ]
    if assessed is not None and (scenarios or lost):
        sentences.append(by_damage(assessed))
    if unfinished:
        sentences.insert(0, unfinished_words(unfinished))
    required = requirements_of(named, models, gate)
    return RunAnswer(tuple(sentences), named, required, len(models), bool(unfinished), bool(lost or left_out))


def unfinished_words(so_far: str) -> str:
    """The first sentence on an unfinished run."""
    return f"Decide nothing yet: the run is not finished ({so_far} are done)."


def leading(findings: Findings) -> RunAnswer:
    """The answer from all findings."""
    scenarios = None if findings.by_damage else findings.answer("indicators", IndicatorAssessment)
    indicators = result_of(scenarios)
    return answer(
        findings.answer("damage", DamageAssessment) or Unanswered("damage was not asked for"),
        stated_results(indicators) if indicators else (),
        findings.answer("gate", GateResult),
        lost=why_not(scenarios).rstrip(".") if findings.scenarios_stated else "",
        left_out=indicators.unanswered if indicators else None,
        unfinished=findings.unfinished,
    )


def _of_scenarios(
    scenarios: Sequence[ScenarioResult], damage: DamageAssessment | None, gate: Gate
) -> tuple[str | None, list[str]]:
    """The model that all scenarios name, and a sentence on each; the first sentence carries the requirements."""
    names = {one.least_bad for one in scenarios}
    if len(names) > 1:
        return None, [disagreement(scenarios, gate), *(scenario_headline(one, damage) for one in scenarios)]
    first, *others = scenarios
    return names.pop(), [scenario_headline(first, damage, gate), *(scenario_headline(one, damage) for one in others)]
