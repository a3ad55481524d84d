"""The attacks that a study certifies: those with a norm and an eps, or those that it names."""

from collections.abc import Sequence

from advrisk.core.names import matches, no_match
from advrisk.study import Arm, StudySpec

_LOC = ("assess", "certificate")


def certified_arms(study: StudySpec, arms: Sequence[Arm]) -> list[Arm]:
    """The attacks of a study's certificate; none without a certificate."""
    spec = study.assess.certificate
    if spec is None:
        return []
    sized = [arm for arm in arms if _is_sized(arm)]
    return sized if spec.arms is None else [arm for arm in sized if matches(arm.shown, spec.arms)]


def refuse_uncertifiable(study: StudySpec, arms: Sequence[Arm]) -> None:
    """Refuse a certificate without a calibration split, without attacks, or of arms without norm and eps."""
    spec = study.assess.certificate
    if spec is None:
        return
    if not study.data.calibrate:
        problem = "needs samples of a calibration split; add, for example, `calibrate: 1000` to `data`"
        raise study.where.error(_LOC, problem)
    for index, pattern in enumerate(spec.arms or ()):
        if complaint := no_match(pattern, [arm.shown for arm in arms]):
            raise study.where.error((*_LOC, "arms", index), complaint)
        if not any(_is_sized(arm) and matches(arm.shown, [pattern]) for arm in arms):
            problem = f"{pattern!r} names no attack with a norm and an eps, which a certificate needs"
            raise study.where.error((*_LOC, "arms", index), problem)
    if not certified_arms(study, arms) and not study.search:
        problem = "finds no attack with a norm and an eps among the arms; add one, or a `search` for one"
        raise study.where.error(_LOC, problem)


def _is_sized(arm: Arm) -> bool:
    return arm.kind == "attack" and arm.norm is not None and arm.eps is not None
