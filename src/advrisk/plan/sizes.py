"""Checks of sizes against the data: a wrong scale (`8` for `8/255`) is refused before anything runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advrisk.core.extent import LEVELS, Extent
from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.core.traits import Norm
from advrisk.study import ArmEntry, DamageSpec, Loc, SearchEntry, StudySpec


@dataclass(frozen=True)
class _Size:
    loc: Loc
    norm: Norm
    eps: float


def refuse_sizes(study: StudySpec, registries: Registries, extent: Extent) -> None:
    """Refuse a size that exceeds the distance of any two inputs: usually its unit is wrong.

    Sizes of presets are exempt: those of a paper exceed it on purpose.
    """
    mistakes = Mistakes()
    for size in _sizes(study, registries):
        if complaint := extent.complaint(size.eps, size.norm):
            mistakes.add(study.where.error(size.loc, complaint))
    mistakes.refuse()


def size_doubts(study: StudySpec, registries: Registries, extent: Extent) -> list[str]:
    """Warnings about sizes in linf below half a gray level on images outside [0, 1]: probably meant for [0, 1]."""
    span = extent.high - extent.low
    if not extent.images or not extent.unit_scale or span <= 2:
        return []
    small = {
        size.loc: size.eps
        for size in _sizes(study, registries)
        if size.norm == "linf" and 0 < size.eps < span / LEVELS / 2
    }
    return [
        str(
            study.where.error(
                loc, f"found {eps:.4g} on {extent}, less than half a gray level; did you mean {eps * span:.4g}?"
            )
        )
        for loc, eps in small.items()
    ]


def _sizes(study: StudySpec, registries: Registries) -> Iterator[_Size]:
    """Every eps that the study states itself, with its norm and location."""
    for index, entry in enumerate(study.arms):
        yield from _of_arm(entry, ("arms", index), registries)
    for index, detector in enumerate(study.detectors):
        for number, entry in enumerate(detector.arms or ()):
            yield from _of_arm(entry, ("detectors", index, "arms", number), registries)
    for index, search in enumerate(study.search):
        yield from _of_search(search, ("search", index), registries)
    yield from _of_damage(study.assess.damage, ("assess", "damage"))


def _of_arm(entry: ArmEntry, loc: Loc, registries: Registries) -> Iterator[_Size]:
    if entry.arm is not None:
        yield from _of_arm(entry.arm, (*loc, "arm"), registries)
    for norm in _norms(entry, registries):
        for eps in entry.eps or ():
            yield _Size((*loc, "eps"), norm, eps)


def _of_search(search: SearchEntry, loc: Loc, registries: Registries) -> Iterator[_Size]:
    norms = search.norm or [norm for name in search.attack for norm in registries.attacks.get(name).traits.norms]
    searched = (search.over or {}).get("eps")
    for norm in norms:
        for eps in search.eps or ():
            yield _Size((*loc, "eps"), norm, eps)
        if searched is not None:
            yield _Size((*loc, "over", "eps"), norm, searched.high)


def _of_damage(asked: DamageSpec, loc: Loc) -> Iterator[_Size]:
    for size in asked.thresholds or ():
        yield _Size((*loc, "thresholds"), asked.norm, size)
    if isinstance(asked.evasion, float):
        yield _Size((*loc, "evasion"), asked.norm, asked.evasion)


def _norms(entry: ArmEntry, registries: Registries) -> Sequence[Norm]:
    """The norms of an entry's eps: those it names, or the only ones of its attack or preset."""
    if entry.norm:
        return entry.norm
    norms = [norm for name in entry.attack or () for norm in registries.attacks.get(name).traits.norms]
    for name in entry.preset or ():
        norm = registries.presets.get(name).parameters.get("norm")
        norms += [norm.default] if norm is not None and not norm.required else []
    return norms
