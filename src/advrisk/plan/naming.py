"""Names that a study sets: one entry may stand for several arms or detectors, and each needs a name of its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advrisk.core.errors import AdvriskError
from advrisk.core.numbers import size_text
from advrisk.core.traits import DETECTOR
from advrisk.plan.grids import flat, shown
from advrisk.study import Arm

_LEVEL = re.compile(r"-(level-\d+)")
_OTHER_FACETS = ("from", "arm", DETECTOR)  # parameters with a facet of another name


def named_arms(name: str | None, arms: Iterable[Arm], detectors: Mapping[str, str]) -> list[Arm]:
    """The arms of one entry with their names: that of the entry, with the differences where there are several.

    `detectors`: full names of detectors -> their names in the study.
    """
    unnamed = list(arms)
    if name is None:
        return [_by_detector(arm, detectors) for arm in unnamed]
    names = distinguishing_names(name, {arm.id: _facets(arm, detectors) for arm in unnamed})
    return [replace(arm, name=names[arm.id]) for arm in unnamed]


def distinguishing_names(name: str, facets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Id -> name: `cheap-8/255-kl`, with as few of the differing values as are necessary."""
    names = dict.fromkeys(facets, name)
    for key in dict.fromkeys(key for own in facets.values() for key in own):
        longer = {one: f"{names[one]}-{own[key]}" if key in own else names[one] for one, own in facets.items()}
        if len(set(longer.values())) > len(set(names.values())):
            names = longer
    return names


def refuse_taken_names(named: Mapping[str, str], kind: str) -> None:
    """Refuse two ids with one name, or a name that is another's id; `named`: id -> displayed name."""
    owners: dict[str, str] = {}
    for own, name in named.items():
        other = owners.setdefault(name, own)
        if other != own:
            raise AdvriskError(f"{other} and {own} both have the name {name!r}; give one of these {kind}s another name")
        if name != own and name in named:
            raise AdvriskError(f"the name {name!r} is the id of another {kind}; choose another name")


def _by_detector(arm: Arm, detectors: Mapping[str, str]) -> Arm:
    """An arm that knows a named detector gets a name: its id with the detector's name."""
    full = str(arm.params.get(DETECTOR, ""))
    alias = detectors.get(full)
    if alias is None:
        return arm
    return replace(arm, name=arm.id.replace(f"{DETECTOR}={full.rpartition('@')[0]}", f"{DETECTOR}={alias}", 1))


def _facets(arm: Arm, detectors: Mapping[str, str]) -> dict[str, str]:
    """The facets that may distinguish an arm from others of its entry, the most familiar first."""
    inner = arm.crafted_by or arm
    level = _LEVEL.search(inner.id) if inner.kind == "corruption" else None
    full = str(arm.params.get(DETECTOR, ""))
    facets = {
        "from": arm.surrogate,
        "family": inner.family,
        "norm": inner.norm,
        "eps": None if inner.eps is None else size_text(inner.eps),
        "level": level[1] if level else None,
        "objective": inner.objective,
        DETECTOR: detectors.get(full, full.rpartition("@")[0]) or None,
        "keep": inner.keep,
    }
    params = {key: f"{key}={shown(value)}" for key, value in flat(inner.params) if key not in _OTHER_FACETS}
    return {key: text for key, text in facets.items() if text is not None} | params


def detector_facets(params: Mapping[str, object], arms: Sequence[Arm]) -> dict[str, str]:
    """The facets that may distinguish a detector from others of its entry."""
    return {key: f"{key}={shown(value)}" for key, value in flat(params)} | {"arms": "+".join(arm.id for arm in arms)}
