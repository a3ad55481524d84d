"""Which arms are looked at together: groups of one norm and size as rows, objectives as columns."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from advrisk.core.numbers import parse_number, size_text

MULTI_ARMED = "multi-armed"  # the column of all arms
NO_NORM = "no norm"
ADAPTIVE = "adaptive"  # the family of attacks that know a detector


@dataclass(frozen=True)
class ScoredArm:
    """An arm, as far as groups are made of it. A repeat is an arm of its own: the attacker may take any."""

    name: str
    repeat: int = 0
    family: str | None = None
    norm: str | None = None
    eps: float | None = None
    objective: str | None = None
    repeated: bool = False  # there are several repeats
    against: str | None = None  # the detector that an adaptive arm knows: its full name

    @property
    def label(self) -> str:
        return f"{self.name} #{self.repeat + 1}" if self.repeated else self.name


@dataclass(frozen=True)
class ArmGroup:
    """Arms of one norm and size; or of one norm and family, where that knows no size; or all without a norm."""

    label: str
    norm: str  # or NO_NORM
    arms: tuple[int, ...]  # places
    eps: float | None = None  # to six digits


def grouped(arms: Sequence[ScoredArm]) -> tuple[ArmGroup, ...]:
    """Groups by norm, then by size, those without one after them; adaptive arms are in none."""
    found: dict[tuple[str, bool, float, str], list[int]] = {}
    for place, arm in enumerate(arms):
        if arm.family != ADAPTIVE:
            found.setdefault(_key(arm), []).append(place)
    return tuple(_group(found[key], arms) for key in sorted(found, key=_in_order))


def _group(places: Sequence[int], arms: Sequence[ScoredArm]) -> ArmGroup:
    first = arms[places[0]]
    sizes = [size_text(eps) for place in places if (eps := arms[place].eps) is not None]
    size = min(sizes, key=_fractions_first, default="")
    norm, _, eps, family = _key(first)
    return ArmGroup(_label(_key(first), size), norm, tuple(places), None if norm == NO_NORM or family else eps)


def size_of(arm: ScoredArm, groups: Sequence[ArmGroup]) -> str:
    """The label of the group that an arm would be in."""
    norm, _, eps, family = _key(arm)
    alike = (group.label for group in groups if not family and (group.norm, group.eps) == (norm, eps))
    return next(alike, _label(_key(arm), size_text(arm.eps or 0.0)))


def named_group(groups: Sequence[ArmGroup], asked: str) -> ArmGroup | None:
    """The group that is asked for: `linf 8/255`, `linf-8/255` and `linf-0.0313725` are one."""
    norm, _, size = _spaced(asked).partition(" ")
    eps = None
    with contextlib.suppress(ValueError):
        eps = _six_digits(parse_number(size))
    for group in groups:
        if _spaced(group.label) == _spaced(asked) or (eps is not None and (group.norm, group.eps) == (norm, eps)):
            return group
    return None


def columns(arms: Sequence[ScoredArm]) -> tuple[str, ...]:
    """The objectives that stand for single-armed attackers, and MULTI_ARMED.

    Where some attack was run with several objectives, these are the columns: what the only objective of another attack
    is (Square's margin, say) was nobody's choice. Where none was, every objective is a column.
    """
    usual = [arm for arm in arms if arm.family != ADAPTIVE]
    of_family: dict[str | None, dict[str, None]] = {}
    for arm in usual:
        if arm.objective is not None:
            of_family.setdefault(arm.family, {})[arm.objective] = None
    varied = [objective for names in of_family.values() if len(names) > 1 for objective in names]
    chosen = varied or [objective for names in of_family.values() for objective in names]
    return (*dict.fromkeys(chosen), MULTI_ARMED)


def arms_of(column: str, group: ArmGroup, arms: Sequence[ScoredArm], names: Sequence[str]) -> tuple[int, ...]:
    """The arms of a group that a column holds: those of its objective, and those whose objective has no column."""
    if column == MULTI_ARMED:
        return group.arms
    return tuple(place for place in group.arms if arms[place].objective == column or arms[place].objective not in names)


def _key(arm: ScoredArm) -> tuple[str, bool, float, str]:
    """Norm, whether it has no size, size, and the family of one without a size."""
    if arm.norm is None:
        return NO_NORM, False, 0.0, ""
    if arm.eps is None:
        return arm.norm, True, 0.0, arm.family or arm.name
    return arm.norm, False, _six_digits(arm.eps), ""  # 8/255 and 0.0313725 are one size


def _six_digits(eps: float) -> float:
    return float(f"{eps:.6g}")


def _fractions_first(size: str) -> tuple[bool, str]:
    return "/" not in size, size


def _spaced(label: str) -> str:
    return label.strip().lower().replace("-", " ")


def _in_order(key: tuple[str, bool, float, str]) -> tuple[bool, str, bool, float, str]:
    return key[0] == NO_NORM, *key


def _label(key: tuple[str, bool, float, str], size: str) -> str:
    norm, _, _, family = key
    return NO_NORM if norm == NO_NORM else f"{norm} {family or size}"
