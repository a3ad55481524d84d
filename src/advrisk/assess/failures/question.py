"""Which inputs fail where a scenario hurts most."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.failures.exhibits import with_exhibits
from advrisk.assess.failures.modes import FailureModes, failure_modes
from advrisk.assess.failures.sections import MAX_MODELS, SHOWN, sections
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.question import named_losses, stated_losses
from advrisk.assess.protocol import Assessment
from advrisk.core.sections import Section
from advrisk.ledger import Ledger
from advrisk.study import assessments
from advrisk.study.options import FailuresOptions


@assessments.register("failures")
class Failures(Assessment):
    """For each model the branches that contribute most to its risk, and the samples that each of them hurts most."""

    kind = FailureModes
    several = True

    def assess(self, context: Context, spec: FailuresOptions) -> tuple[FailureModes, ...]:
        """Of one scenario under one loss, by default the first of each; or of every one, for the page."""
        found = self._risks(context, spec)
        if spec.every:
            shown = [(one, [row.model for row in one.models[:MAX_MODELS]]) for one in found.results]
        else:
            shown = [(found.results[0], [] if spec.model is None else [spec.model])]
        return tuple(
            failure_modes(context.ledger, one, found.tensors or {}, models=models, n=spec.samples)
            for one, models in shown
        )

    def _risks(self, context: Context, spec: FailuresOptions) -> IndicatorAssessment:
        if spec.every:
            own: IndicatorAssessment = context.result("indicators")
            return own
        losses = named_losses(context.study, [spec.loss]) if spec.loss else list(stated_losses(context.study))[:1]
        one = None if spec.scenario is None else [spec.scenario]
        found: IndicatorAssessment = context.result("indicators", scenario=one, losses=losses)
        return found

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Wherever indicators are answered."""
        found = context.for_page("indicators")
        if not (isinstance(found, IndicatorAssessment) and found.results):
            return None
        stated = context.study is not None and "samples" in context.study.assess.failures.model_fields_set
        return {"every": True} | ({} if stated else {"samples": SHOWN})

    def sections(self, result: Sequence[FailureModes], models: Sequence[str]) -> Iterable[Section]:
        """Each scenario and loss, and in it each model; all but the first are folded away."""
        return sections(result, models)

    def illustrated(self, folder: Path, ledger: Ledger, result: Sequence[FailureModes]) -> tuple[FailureModes, ...]:
        """With the inputs themselves."""
        del folder
        return tuple(with_exhibits(ledger.storage, one) for one in result)
