"""The question of key risk indicators: the risk in a described deployment, and what drives it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.indicators.assessment import IndicatorAssessment, assess_indicators
from advrisk.assess.indicators.scenarios import chosen_scenarios, stated_scenarios
from advrisk.assess.indicators.sections import quantities, sections
from advrisk.assess.protocol import Assessment
from advrisk.core.errors import RiskError
from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import one_or_many
from advrisk.core.sections import Section
from advrisk.core.seeds import key
from advrisk.risk.indicators import MissingArmsError
from advrisk.study import StudySpec, assessments
from advrisk.study.options import IndicatorOptions

_CORRUPTED = "SELECT 1 FROM arms WHERE kind = 'corruption' AND origin <> 'dropped'"


@assessments.register("indicators")
class Indicators(Assessment):
    """The risk in each scenario, and what drives it (Schwerdtner et al.)."""

    kind = IndicatorAssessment

    def assess(self, context: Context, spec: IndicatorOptions) -> IndicatorAssessment:
        """Assess every chosen scenario under every loss."""
        own = context.study.scenarios if context.study else {}
        stated = stated_scenarios(own if spec.scenarios is None else spec.scenarios)
        try:
            assessment = assess_indicators(
                context.ledger,
                chosen_scenarios(stated, spec.scenario, spec.what_if or {}),
                stated_losses(context.study, spec.losses),
                models=spec.models,
                arms=spec.arms,
                level=spec.level,
                seed=key("indicators", context.seed),
            )
        except MissingArmsError as error:
            named = "Only the arms that were named count here"
            raise RiskError(f"{error}. {named if spec.arms else context.what_to_run(error, context.ledger)}") from None
        notes = (*context.view.sentences(), *assessment.notes)
        return replace(assessment, notes=notes, samples_left=context.samples_left)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """No options if the study states a scenario or has a corruption; else None."""
        return {} if context.scenarios_stated or len(context.ledger.query(_CORRUPTED)) else None

    def sections(self, result: IndicatorAssessment, models: Sequence[str]) -> Iterable[Section]:
        """Each scenario under each loss, then every arm, and robustness numbers."""
        return sections(result, models)

    def quantities(self, result: IndicatorAssessment) -> Iterable[NamedEstimate]:
        """The risk given every branch, and stored measures."""
        return quantities(result)


def stated_losses(study: StudySpec | None, losses: Sequence[object] | None = None) -> Sequence[object]:
    """The given losses, by default those of the study; a name alone is one loss."""
    if losses is not None:
        return one_or_many(losses)
    return study.loss_entries() if study else ()


def named_losses(study: StudySpec | None, names: Sequence[str]) -> list[object]:
    """The losses of the study with these names (`as` or `name`); other names are losses without options."""
    entries = {entry.get("as", entry["name"]): entry for entry in stated_losses(study) if isinstance(entry, dict)}
    return [entries.get(name, name) for name in names]
