"""The answer of a run: which model is the least bad, whether it may be shipped, and the sentences that say so.

Terminal, report, JSON and Python all take it from here, so that no two of them can differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.report.findings import Findings, or_why
from advrisk.report.headline import (
    Requirements,
    by_damage,
    disagreement,
    headline,
    requirements_of,
    scenario_headline,
)
from advrisk.report.indicators import stated_results
from advrisk.risk.assessment import DamageAssessment
from advrisk.risk.gate.records import GateResult
from advrisk.risk.indicators.comparison import ScenarioResult


@dataclass(frozen=True)
class Answer:
    """What the evidence names; the first sentence says the same."""

    sentences: tuple[str, ...]  # empty where there is nothing to name a model by
    least_bad: str | None  # None: undecided, the scenarios disagree, or nothing to compare
    requirements: Requirements | None  # of the least bad model; None: none is stated
    unfinished: bool = False

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.sentences[0] if self.sentences else ""

    @property
    def ship(self) -> str | None:
        """The least bad model, if the run is done and the model meets what is required of it."""
        return self.least_bad if self.requirements in (None, "met") and not self.unfinished else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "headline": self.headline,
            "headlines": list(self.sentences),
            "ship": self.ship,
            "least_bad": self.least_bad,
            "decided": self.least_bad is not None,
            "requirements": self.requirements,
        }


def answer(
    damage: DamageAssessment | None,
    scenarios: Sequence[ScenarioResult] = (),
    gate: GateResult | None = None,
    *,
    why_not: str = "",
    unfinished: str = "",
) -> Answer:
    """What was asked, in its order: the scenarios, then damage; requirements stand in the first sentence.

    `why_not` says why stated scenarios have no result, `unfinished` how far a run is that is not done.
    """
    named, said = None, [f"Decide nothing yet: the run is not finished ({unfinished} are done)."] if unfinished else []
    models = [row.model for row in (scenarios[0].models if scenarios else damage.models if damage else ())]
    if scenarios:
        named = _agreed(scenarios)
        split = len({one.least_bad for one in scenarios}) > 1
        said += [disagreement(scenarios, gate)] if split else []
        said += [
            scenario_headline(one, damage, gate if place == 0 and not split else None)
            for place, one in enumerate(scenarios)
        ]
    elif why_not:
        said.append(f"The study's scenarios have no answer: {why_not}.")
    elif damage is not None:
        named = damage.least_bad
        said.append(headline(damage, gate))
    if damage is not None and (scenarios or why_not):
        said.append(by_damage(damage))
    return Answer(tuple(said), named, requirements_of(named, models, gate), bool(unfinished))


def leading(found: Findings) -> Answer:
    """The answer of everything that was found."""
    indicators, why = or_why(found.indicators)
    if found.by_damage:
        indicators, why = None, ""
    return answer(
        or_why(found.damage)[0],
        stated_results(indicators) if indicators else (),
        or_why(found.gate)[0],
        why_not=why.rstrip(".") if found.scenarios_stated else "",
        unfinished=found.unfinished,
    )


def _agreed(scenarios: Sequence[ScenarioResult]) -> str | None:
    named = {one.least_bad for one in scenarios}
    return named.pop() if len(named) == 1 else None
