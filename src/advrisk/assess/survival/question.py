"""The question of survival: how long until each model breaks, what that depends on, and what it costs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment
from advrisk.assess.survival.assessment import SurvivalAssessment, assess_survival
from advrisk.assess.survival.money import Hardware
from advrisk.assess.survival.sections import quantities, sections
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section
from advrisk.study import assessments
from advrisk.study.options import SurvivalOptions


@assessments.register("survival")
class Survival(Assessment):
    """How long models survive, and what breaking them costs (Meyers et al.)."""

    kind = SurvivalAssessment

    def assess(self, context: Context, spec: SurvivalOptions) -> SurvivalAssessment:
        """Assess the work up to each first success."""
        machine = None if spec.hardware is None else Hardware(spec.hardware.name, spec.hardware.per_hour)
        assessment = assess_survival(
            context.ledger,
            usual_norm=context.study.assess.damage.norm if context.study else "linf",
            hardware=machine,
            seed=context.seed,
            **spec.model_dump(exclude={"hardware"}),
        )
        return replace(assessment, notes=(*context.view.sentences(), *assessment.notes))

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """No options if the study has `assess: {survival: {…}}`; else None."""
        return {} if context.study is not None and "survival" in context.study.assess.model_fields_set else None

    def sections(self, result: SurvivalAssessment, models: Sequence[str]) -> Iterable[Section]:
        """The models and their curves, covariates, and costs; laws and the paper's figures are folded."""
        return sections(result, models)

    def quantities(self, result: SurvivalAssessment) -> Iterable[NamedEstimate]:
        """Mean, median and failure rates of every model."""
        return quantities(result)
