"""What a study requires, looked at before anything runs: the refusal must not come after all the work."""

from collections.abc import Iterable, Sequence

from advrisk.core.errors import StudyError
from advrisk.core.names import matches
from advrisk.plan import ConfiguredDetector
from advrisk.risk.losses import bound_losses
from advrisk.study import Arm, Ground, StudySpec, expanded, parse_requirement, study_ground


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
    return study_ground(
        study,
        models=models,
        damage=asked,
        sizes=[arm.eps for arm in own if arm.eps is not None],
        endless=any(arm.eps is None for arm in own),
        refuses=refuses,
        detectors=[one.id for one in detectors],
        losses=[loss.label for loss in bound_losses(study.loss_entries(), folder=study.where.folder)],
    )
