"""Which arms are looked at together: groups of one norm and size as rows, objectives as columns."""

from collections.abc import Sequence
from dataclasses import dataclass

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
class Group:
    """Arms of one norm and size; or of one norm and family, where that knows no size; or all without a norm."""

    label: str
    norm: str  # or NO_NORM
    arms: tuple[int, ...]  # places


def grouped(arms: Sequence[ScoredArm]) -> tuple[Group, ...]:
    """Groups by norm, then by size, those without one after them; adaptive arms are in none."""
    found: dict[tuple[str, bool, float, str], list[int]] = {}
    for place, arm in enumerate(arms):
        if arm.family != ADAPTIVE:
            found.setdefault(_key(arm), []).append(place)
    return tuple(Group(_label(key), key[0], tuple(found[key])) for key in sorted(found, key=_in_order))


def size_of(arm: ScoredArm) -> str:
    """The name of the group that an arm would be in."""
    return _label(_key(arm))


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


def arms_of(column: str, group: Group, arms: Sequence[ScoredArm], names: Sequence[str]) -> tuple[int, ...]:
    """The arms of a group that a column holds: those of its objective, and those whose objective has no column."""
    if column == MULTI_ARMED:
        return group.arms
    return tuple(place for place in group.arms if arms[place].objective == column or arms[place].objective not in names)


def _key(arm: ScoredArm) -> tuple[str, bool, float, str]:
    if arm.norm is None:
        return NO_NORM, False, 0.0, ""
    if arm.eps is None:
        return arm.norm, True, 0.0, arm.family or arm.name
    return arm.norm, False, float(f"{arm.eps:.6g}"), ""  # 8/255 and 0.0313725 are one size


def _in_order(key: tuple[str, bool, float, str]) -> tuple[bool, str, bool, float, str]:
    return key[0] == NO_NORM, *key


def _label(key: tuple[str, bool, float, str]) -> str:
    norm, _, eps, family = key
    if norm == NO_NORM:
        return NO_NORM
    return f"{norm} {family}" if family else f"{norm} {eps:.6g}"
