"""The question of detection: the performance of the detectors that scored a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.damage.walk import detectors_of
from advrisk.assess.detection.assessment import DetectionAssessment, assess_detection
from advrisk.assess.detection.sections import quantities, sections
from advrisk.assess.protocol import Assessment
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section
from advrisk.core.seeds import key
from advrisk.ledger import Ledger
from advrisk.study import assessments
from advrisk.study.options import DetectionOptions


@assessments.register("detection")
class Detection(Assessment):
    """Detectors against all arms that broke a sample (MEAD)."""

    kind = DetectionAssessment

    def assess(self, context: Context, spec: DetectionOptions) -> DetectionAssessment:
        """Assess the named detectors, by default all."""
        assessment = assess_detection(
            context.ledger,
            detectors=spec.detectors,
            models=spec.models,
            arms=spec.arms,
            tpr=spec.tpr,
            level=spec.level,
            resamples=spec.resamples,
            threshold={"false_alarms": spec.false_alarms} if spec.threshold is None else spec.threshold,
            seed=key("detection", context.seed),
        )
        return replace(assessment, notes=(*context.view.sentences(), *assessment.notes))

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """No options if detectors scored the run, or the one detector that a part uses; else None."""
        if not detectors_of(context.ledger):
            return None
        alarm = context.asked.get("detector")
        if alarm is None:
            return {}
        limit = alarm["threshold"] if alarm.get("threshold") is not None else {"false_alarms": alarm["false_alarms"]}
        return {"detectors": [alarm["name"]], "threshold": limit}

    def missing(self, ledger: Ledger, why: str) -> str:
        """A note if no detector was assessed."""
        del ledger
        return "" if why else "No detector was assessed."

    def sections(self, result: DetectionAssessment, models: Sequence[str]) -> Iterable[Section]:
        """Every detector in front of every model, the best first; then every group and arm."""
        return sections(result, models)

    def quantities(self, result: DetectionAssessment) -> Iterable[NamedEstimate]:
        """AUROC and false-positive rate of every detector in front of every model."""
        return quantities(result)
