"""Which model the evidence names: by the study's scenarios where it states some, else by damage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from advrisk.api.part import asks_for_damage
from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.indicators.question import named_losses
from advrisk.assess.indicators.sections import risk_table
from advrisk.assess.indicators.words import stated_results
from advrisk.assess.protocol import finding_of
from advrisk.assess.selection.answer import RunAnswer, answer
from advrisk.assess.selection.headline import Requirements
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.plain import plain, plain_fields
from advrisk.core.sections import Headline, Section, Unanswered, result_of
from advrisk.render.notebook import sections_html
from advrisk.render.terminal import printed
from advrisk.report.records import damage_record
from advrisk.risk.indicators.comparison import ScenarioResult

if TYPE_CHECKING:
    from advrisk.api.run import Run

DAMAGE = "damage"


@dataclass(frozen=True)
class Selection:
    """The named model, or that the evidence names none, and the answers that this rests on; the first one leads."""

    answer: RunAnswer
    by: str  # `damage`, or the names of the scenarios
    damage: DamageAssessment | None
    scenarios: tuple[ScenarioResult, ...] = ()

    @property
    def ship(self) -> str | None:
        """The least bad model, if it meets what is required of it; None: it does not, or there is none."""
        return self.answer.ship

    @property
    def least_bad(self) -> str | None:
        """The model that the evidence names; None: undecided, or nothing to compare."""
        return self.answer.least_bad

    @property
    def requirements(self) -> Requirements | None:
        """Whether the least bad model meets what is required of it; None: nothing is stated."""
        return self.answer.requirements

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.answer.headline

    @property
    def headlines(self) -> tuple[str, ...]:
        """The answer, then those to what else was asked."""
        return self.answer.sentences

    @property
    def decided(self) -> bool:
        """Whether the evidence of a finished run names one model."""
        return self.answer.decided

    @property
    def exit_code(self) -> int:
        """Of `advrisk select`."""
        return self.answer.exit_code

    @property
    def sections(self) -> tuple[Section, ...]:
        """The answer for people: headlines, and the risks and the damage that it rests on."""
        damage = () if self.damage is None else finding_of(DAMAGE, self.damage).sections
        rest = (one for one in damage if not isinstance(one, Headline))
        return (*map(Headline, self.headlines), *map(risk_table, self.scenarios), *rest)

    def __str__(self) -> str:
        return printed(self.sections)

    def _repr_html_(self) -> str:
        return sections_html(self.sections)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every number of damage, and above it what was selected, and by what."""
        beside = {} if self.damage is None else damage_record(self.damage)
        own = {"by": self.by, "scenarios": plain(self.scenarios)}
        return beside | plain_fields(self.answer) | own | {"damage_least_bad": self.damage and self.damage.least_bad}


def select_model(run: "Run", *, scenario: Sequence[str] | None = None, loss: str | None = None) -> Selection:
    """Of a run or a part of it; `scenario` and `loss` say by which of them, also where damage was asked for."""
    explicit = scenario is not None or loss is not None
    context = run.context
    stated = context.scenarios_stated and not asks_for_damage(run)
    results, left_out, lost = (
        _scenario_results(context, scenario, loss, explicit=explicit) if explicit or stated else ((), {}, "")
    )
    unfinished = "" if context.status.done else context.status.so_far
    damage = _damage(context, needed=not (results or lost or unfinished))
    return Selection(
        answer=answer(damage, results, context.for_page("gate"), lost=lost, left_out=left_out, unfinished=unfinished),
        by=", ".join(one.scenario.name for one in results) or ("scenarios" if lost else DAMAGE),
        damage=result_of(damage),
        scenarios=tuple(results),
    )


def _scenario_results(
    context: Context, scenario: Sequence[str] | None, loss: str | None, *, explicit: bool
) -> tuple[Sequence[ScenarioResult], Mapping[str, str], str]:
    """The results that decide, and why some scenarios have none; or why there are none at all, where they were not
    asked for by name."""
    losses = None if loss is None else named_losses(context.study, [loss])
    try:
        found = context.result("indicators", scenario=None if scenario is None else list(scenario), losses=losses)
    except (RiskError, StudyError) as error:
        if explicit:
            raise
        return (), {}, str(error).rstrip(".")
    return stated_results(found) or found.results[:1], found.unanswered, ""


def _damage(context: Context, *, needed: bool) -> DamageAssessment | Unanswered:
    """Damage, or why there is none, which is an error where it is `needed`."""
    try:
        found: DamageAssessment = context.result("damage")
        return found
    except RiskError as error:  # corruptions alone, say
        if needed:
            raise
        return Unanswered(str(error))
