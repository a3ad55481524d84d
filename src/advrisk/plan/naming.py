"""Names that a study gives: one entry may stand for several arms or detectors, and each needs a name of its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advrisk.core.errors import AdvriskError
from advrisk.core.numbers import size_text
from advrisk.core.traits import DETECTOR
from advrisk.plan.grids import flat, shown
from advrisk.study import Arm

_LEVEL = re.compile(r"-(level-\d+)")
_ELSEWHERE = ("from", "arm", DETECTOR)  # parameters that stand elsewhere among the facets


def named_arms(name: str | None, arms: Iterable[Arm], detectors: Mapping[str, str]) -> list[Arm]:
    """The arms of one entry with their names: that of the entry, and what tells them apart where there are several.

    `detectors`: what those are called that an arm may know, by their full names.
    """
    found = list(arms)
    if name is None:
        return [_by_detector(arm, detectors) for arm in found]
    each = {arm.id: _facets(arm, detectors) for arm in found}
    names = told_apart(name, each)
    return [replace(arm, name=names[arm.id]) for arm in found]


def told_apart(name: str, facets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Id -> name: `cheap-8/255-kl`, with the values that differ, and no more of them than it takes."""
    names = dict.fromkeys(facets, name)
    for key in dict.fromkeys(key for each in facets.values() for key in each):
        longer = {one: f"{names[one]}-{each[key]}" if key in each else names[one] for one, each in facets.items()}
        if len(set(longer.values())) > len(set(names.values())):
            names = longer
    return names


def refuse_taken_names(named: Mapping[str, str], kind: str) -> None:
    """Two ids with one name, or a name that is another's id; `named`: id -> what is shown."""
    owners: dict[str, str] = {}
    for held, name in named.items():
        other = owners.setdefault(name, held)
        if other != held:
            raise AdvriskError(
                f"the name {name!r} is that of {other} and of {held}; call one of these {kind}s otherwise"
            )
        if name != held and name in named:
            raise AdvriskError(f"the name {name!r} is the id of another {kind}; choose another name")


def _by_detector(arm: Arm, detectors: Mapping[str, str]) -> Arm:
    """An arm without a name that knows a detector with one is shown with that in its id."""
    full = str(arm.params.get(DETECTOR, ""))
    called = detectors.get(full)
    if called is None:
        return arm
    return replace(arm, name=arm.id.replace(f"{DETECTOR}={full.rpartition('@')[0]}", f"{DETECTOR}={called}", 1))


def _facets(arm: Arm, detectors: Mapping[str, str]) -> dict[str, str]:
    """What tells an arm from others of its entry, first what readers know it by."""
    inner = arm.crafted_by or arm
    level = _LEVEL.search(inner.id) if inner.kind == "corruption" else None
    full = str(arm.params.get(DETECTOR, ""))
    known = {
        "from": arm.surrogate,
        "family": inner.family,
        "norm": inner.norm,
        "eps": None if inner.eps is None else size_text(inner.eps),
        "level": level[1] if level else None,
        "objective": inner.objective,
        DETECTOR: detectors.get(full, full.rpartition("@")[0]) or None,
        "keep": inner.keep,
    }
    params = {key: f"{key}={shown(value)}" for key, value in flat(inner.params) if key not in _ELSEWHERE}
    return {key: text for key, text in known.items() if text is not None} | params


def detector_facets(params: Mapping[str, object], arms: Sequence[Arm]) -> dict[str, str]:
    """What tells a detector from others of its entry."""
    return {key: f"{key}={shown(value)}" for key, value in flat(params)} | {"arms": "+".join(arm.id for arm in arms)}
