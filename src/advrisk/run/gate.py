"""What a study requires, looked at before anything runs: the refusal must not come after all the work."""

from collections.abc import Iterable, Sequence

from advrisk.core.errors import StudyError
from advrisk.core.names import matches
from advrisk.plan import ConfiguredDetector, names_of
from advrisk.risk.losses import bound_losses
from advrisk.study import AVERAGE, Arm, Ground, StudySpec, expanded, parse_requirement


def refuse_gate(
    study: StudySpec,
    models: Sequence[str],
    arms: Iterable[Arm],
    detectors: Sequence[ConfiguredDetector],
    *,
    refuses: bool,
) -> None:
    """Requirements that speak of models, detectors, sizes or scenarios that the study does not have."""
    if not study.gate:
        return
    ground = _ground(study, models, list(arms), detectors, refuses=refuses)
    for place, text in enumerate(study.gate):
        try:
            expanded(parse_requirement(text), ground)
        except StudyError as error:
            raise study.where.error(("gate", place), str(error)) from None


def _ground(
    study: StudySpec,
    models: Sequence[str],
    arms: Sequence[Arm],
    detectors: Sequence[ConfiguredDetector],
    *,
    refuses: bool,
) -> Ground:
    asked = study.assess.damage
    counted = [arm for arm in arms if asked.arms is None or matches(arm.id, asked.arms)]
    own = [arm for arm in counted if arm.kind == "attack" and arm.norm == asked.norm]
    meant = names_of(detectors)
    return Ground(
        models=models,
        norm=asked.norm,
        sizes=[arm.eps for arm in own if arm.eps is not None],
        endless=any(arm.eps is None for arm in own),
        relative=asked.evasion in (None, AVERAGE) and asked.detector is None,
        has_cost=asked.cost is not None,
        refuses=refuses,
        detectors=[name for name, full in meant.items() if len(full) == 1],
        scenarios=list(study.scenarios),
        losses=[loss.label for loss in bound_losses(study.loss_entries(), folder=study.where.folder)],
        certified=study.assess.certificate is not None,
    )
