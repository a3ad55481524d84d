"""Which model the evidence names: by the study's scenarios where it states some, else by damage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from advrisk.api.part import gate_applies
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.plain import plain
from advrisk.report.headline import by_damage, headline, scenario_headline
from advrisk.report.indicators import stated_results
from advrisk.report.records import damage_record
from advrisk.risk.assessment import DamageAssessment
from advrisk.risk.gate.records import GateResult
from advrisk.risk.indicators.comparison import ScenarioResult

if TYPE_CHECKING:
    from advrisk.api.run import Run

DAMAGE = "damage"
_OF_DAMAGE = ("evasion", "detector", "cost")  # who gives one of these asks for damage


@dataclass(frozen=True)
class Selection:
    """The named model, or that the evidence names none, and the answers that this rests on; the first one leads."""

    ship: str | None  # None: undecided, or nothing to compare
    compared: bool  # whether there was more than one model
    by: str  # `damage`, or the names of the scenarios
    headlines: tuple[str, ...]
    damage: DamageAssessment | None
    scenarios: tuple[ScenarioResult, ...] = ()

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.headlines[0]

    @property
    def decided(self) -> bool:
        """Whether the evidence names one model."""
        return self.ship is not None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every number of damage, and above it what was selected, and by what."""
        beside = {} if self.damage is None else damage_record(self.damage)
        own: dict[str, Any] = {"headline": self.headline, "headlines": list(self.headlines), "ship": self.ship}
        own |= {"decided": self.decided, "by": self.by, "scenarios": [one.as_dict() for one in self.scenarios]}
        return beside | {"damage_ship": self.damage.ship if self.damage else None} | dict(plain(own))


def select_model(run: "Run", *, scenario: Sequence[str] | None = None, loss: str | None = None) -> Selection:
    """Of a run or a part of it; `scenario` and `loss` say by which of them, also where damage was asked for."""
    explicit = scenario is not None or loss is not None
    stated = bool(run.study and run.study.scenarios) and not any(name in run.asked for name in _OF_DAMAGE)
    results, why = _scenario_results(run, scenario, loss, explicit=explicit) if explicit or stated else ((), "")
    damage = _damage(run, needed=not results and not why)
    gate = _gate(run)
    said = [scenario_headline(one, damage, gate if place == 0 else None) for place, one in enumerate(results)]
    said += [f"The study's scenarios have no answer: {why}."] if why else []
    if damage is not None:
        said.append(by_damage(damage) if said else headline(damage, gate))
    if run.study and run.study.gate and not gate_applies(run):
        said.append("What the study requires (gate) is not checked on a part of the run.")
    models = results[0].models if results else damage.models if damage else ()
    named = {one.ship for one in results} if results else {damage.ship} if damage and not why else {None}
    return Selection(
        ship=named.pop() if len(named) == 1 else None,
        compared=len(models) > 1,
        by=", ".join(one.scenario.name for one in results) or ("scenarios" if why else DAMAGE),
        headlines=tuple(said),
        damage=damage,
        scenarios=tuple(results),
    )


def _scenario_results(
    run: "Run", scenario: Sequence[str] | None, loss: str | None, *, explicit: bool
) -> tuple[Sequence[ScenarioResult], str]:
    """The results that decide; or why there are none, where they were not asked for by name."""
    losses = None if loss is None else run.named_losses([loss])
    names = None if scenario is None else list(scenario)
    own = names is None and losses is None
    try:
        found = run.own_indicators if own else run.indicators(scenario=names, losses=losses, arms=run.asked.get("arms"))
    except (RiskError, StudyError) as error:
        if explicit:
            raise
        return (), str(error).rstrip(".")
    return stated_results(found) or found.results[:1], ""


def _damage(run: "Run", *, needed: bool) -> DamageAssessment | None:
    try:
        return run.damage(**run.asked)
    except RiskError:  # corruptions alone, say
        if needed:
            raise
        return None


def _gate(run: "Run") -> GateResult | None:
    if run.study is None or not run.study.gate or not gate_applies(run):
        return None
    try:
        return run.gate(evasion=run.asked.get("evasion"), cost=run.asked.get("cost"))
    except (RiskError, StudyError):  # `advrisk gate` says why
        return None
