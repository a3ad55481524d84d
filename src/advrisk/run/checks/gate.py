"""What a study requires, checked before anything runs: the refusal must not come after all the work."""

from collections.abc import Iterable, Sequence

from advrisk.assess.damage.sizes import untried
from advrisk.assess.gate.verdict import UNTRIED
from advrisk.core.errors import StudyError
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import matches
from advrisk.plan import ConfiguredDetector
from advrisk.risk.losses import bound_losses
from advrisk.study import Arm, Ground, Requirement, StoppingTarget, StudySpec, expanded, parse_requirement, study_ground
from advrisk.study.target import GATE, refuse_decision, target_terms

DAMAGE = "damage"


def refuse_gate(
    study: StudySpec,
    models: Sequence[str],
    arms: Iterable[Arm],
    detectors: Sequence[ConfiguredDetector],
    *,
    refuses: bool,
    targets: Sequence[StoppingTarget] = (),
) -> None:
    """Requirements and targets that speak of models, detectors, sizes or scenarios that the study does not have."""
    if not study.gate and not targets:
        return
    attacks = _attacks(study, arms)
    ground = _ground(study, models, attacks, detectors, refuses=refuses)
    required: list[Requirement] = []
    mistakes = Mistakes()
    for place, text in enumerate(study.gate):
        with mistakes.collect(), study.where.at(("gate", place)):
            required += expanded(parse_requirement(text), ground)
    mistakes.refuse()  # a target may be about the requirements
    for target in targets:
        with mistakes.collect():
            _refuse_target(study, target, ground, required)
            _refuse_untried(target, ground, attacks)
    mistakes.refuse()


def _attacks(study: StudySpec, arms: Iterable[Arm]) -> list[Arm]:
    """Those in the norm of damage that count."""
    asked = study.assess.damage
    counted = [arm for arm in arms if asked.arms is None or matches(arm.shown, asked.arms)]
    return [arm for arm in counted if arm.kind == "attack" and arm.norm == asked.norm]


def _refuse_untried(target: StoppingTarget, ground: Ground, attacks: Sequence[Arm]) -> None:
    """A margin of what hardly anybody tries: a gate would not take it for known either."""
    tried = [(arm.eps, arm.keep) for arm in attacks]
    for term in target_terms(target, ground) if target.term else ():
        if term.size is not None and (why := untried(term.size, tried, term.size_text)):
            raise StudyError(f"the target `{target.text}`: {why}; add {UNTRIED}")


def _refuse_target(study: StudySpec, target: StoppingTarget, ground: Ground, required: list[Requirement]) -> None:
    if study.data.order == "file":
        raise study.where.error(
            ("data", "order"),
            f"found `file`, and the target `{target.text}`: the first samples of a file need not be like the others; "
            "shuffle them, `order: shuffled`",
        )
    asked = {one.left.quantity for one in required} if target.text == GATE else {DAMAGE}
    if target.term is None:
        refuse_decision(target, ground, required)
    else:
        asked = {term.quantity for term in target_terms(target, ground)}
    if DAMAGE in asked and len(ground.models) < 2 and ground.relative:
        raise StudyError(f"the target `{target.text}`: damage is relative, and {ground.models[0]} is the only model")
    if study.assess.damage.detector is not None and asked & {DAMAGE, "cost"}:
        raise study.where.error(
            ("assess", "damage", "detector"),
            f"is asked about the attacks once the cells are done, so nobody can look at `{target.text}` before; name "
            "an evasion curve instead, or leave out the target",
        )


def _ground(
    study: StudySpec,
    models: Sequence[str],
    own: Sequence[Arm],
    detectors: Sequence[ConfiguredDetector],
    *,
    refuses: bool,
) -> Ground:
    """`own` are the attacks that count."""
    asked = study.assess.damage
    return study_ground(
        study,
        models=models,
        damage=asked,
        sizes=[arm.eps for arm in own if arm.eps is not None],
        endless=any(arm.eps is None for arm in own),
        refuses=refuses,
        detectors=[one.shown for one in detectors],
        losses=[loss.label for loss in bound_losses(study.loss_entries(), folder=study.where.folder)],
    )
