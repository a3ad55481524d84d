"""Which attacks of a study are certified: those with a norm and an eps, or those that are named."""

from collections.abc import Sequence

from advrisk.core.names import matches, no_match
from advrisk.study import Arm, StudySpec

_PLACE = ("assess", "certificate")


def certified_arms(study: StudySpec, arms: Sequence[Arm]) -> list[Arm]:
    """The attacks of a study that its certificate is about; none where none is asked for."""
    asked = study.assess.certificate
    if asked is None:
        return []
    sized = [arm for arm in arms if _is_sized(arm)]
    return sized if asked.arms is None else [arm for arm in sized if matches(arm.shown, asked.arms)]


def refuse_uncertifiable(study: StudySpec, arms: Sequence[Arm]) -> None:
    """A certificate without samples to calibrate, of no attack, or of what has no norm and eps."""
    asked = study.assess.certificate
    if asked is None:
        return
    if not study.data.calibrate:
        found = "needs samples that nothing else looked at, and there are none; add `calibrate: 1000`, say, to `data`"
        raise study.where.error(_PLACE, found)
    for place, pattern in enumerate(asked.arms or ()):
        if complaint := no_match(pattern, [arm.shown for arm in arms]):
            raise study.where.error((*_PLACE, "arms", place), complaint)
        if not any(_is_sized(arm) and matches(arm.shown, [pattern]) for arm in arms):
            found = (
                f"{pattern!r} names no attack with a norm and an eps, and only within a size a risk can be certified"
            )
            raise study.where.error((*_PLACE, "arms", place), found)
    if not certified_arms(study, arms) and not study.search:
        found = "finds no attack with a norm and an eps among the arms; add one, or a `search` for one"
        raise study.where.error(_PLACE, found)


def _is_sized(arm: Arm) -> bool:
    return arm.kind == "attack" and arm.norm is not None and arm.eps is not None
