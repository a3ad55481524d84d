"""Groups of arms: rows by norm and size, columns by objective."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from advrisk.core.numbers import parse_number, size_text

MULTI_ARMED = "multi-armed"  # the column of all arms
NO_NORM = "no norm"
ADAPTIVE = "adaptive"  # the family of attacks against a model and its detector


@dataclass(frozen=True)
class ScoredArm:
    """The properties of an arm that determine its group; each repeat is a separate arm, as an attacker may use any."""

    name: str
    repeat: int = 0
    family: str | None = None
    norm: str | None = None
    eps: float | None = None
    objective: str | None = None
    repeated: bool = False  # whether there are several repeats
    against: str | None = None  # full name of the detector that an adaptive arm attacks

    @property
    def label(self) -> str:
        return f"{self.name} #{self.repeat + 1}" if self.repeated else self.name


@dataclass(frozen=True)
class ArmGroup:
    """Arms of one norm and size, of one norm and family if that has no size, or all arms without a norm."""

    label: str
    norm: str  # or NO_NORM
    arms: tuple[int, ...]  # indices
    eps: float | None = None  # to six digits


def grouped(arms: Sequence[ScoredArm]) -> tuple[ArmGroup, ...]:
    """Groups by norm, then by size, then those without a size; adaptive arms belong to none."""
    indices: dict[tuple[str, bool, float, str], list[int]] = {}
    for index, arm in enumerate(arms):
        if arm.family != ADAPTIVE:
            indices.setdefault(_key(arm), []).append(index)
    return tuple(_group(indices[key], arms) for key in sorted(indices, key=_in_order))


def _group(indices: Sequence[int], arms: Sequence[ScoredArm]) -> ArmGroup:
    first = arms[indices[0]]
    sizes = [size_text(eps) for index in indices if (eps := arms[index].eps) is not None]
    size = min(sizes, key=_fractions_first, default="")
    norm, _, eps, family = _key(first)
    return ArmGroup(_label(_key(first), size), norm, tuple(indices), None if norm == NO_NORM or family else eps)


def size_of(arm: ScoredArm, groups: Sequence[ArmGroup]) -> str:
    """Label of the group that matches an arm's norm and size."""
    norm, _, eps, family = _key(arm)
    matches = (group.label for group in groups if not family and (group.norm, group.eps) == (norm, eps))
    return next(matches, _label(_key(arm), size_text(arm.eps or 0.0)))


def named_group(groups: Sequence[ArmGroup], label: str) -> ArmGroup | None:
    """The group of a label; `linf 8/255`, `linf-8/255` and `linf-0.0313725` are the same."""
    norm, _, size = _spaced(label).partition(" ")
    eps = None
    with contextlib.suppress(ValueError):
        eps = _six_digits(parse_number(size))
    for group in groups:
        if _spaced(group.label) == _spaced(label) or (eps is not None and (group.norm, group.eps) == (norm, eps)):
            return group
    return None


def columns(arms: Sequence[ScoredArm]) -> tuple[str, ...]:
    """The objectives that represent single-armed attackers, and MULTI_ARMED.

    If some attack ran with several objectives, these are the columns: the only objective of another attack (Square's
    margin, say) is not a choice of the study. Otherwise every objective is a column.
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
    """The arms of a group in a column: those with its objective, and those whose objective has no column."""
    if column == MULTI_ARMED:
        return group.arms
    return tuple(index for index in group.arms if arms[index].objective == column or arms[index].objective not in names)


def _key(arm: ScoredArm) -> tuple[str, bool, float, str]:
    """Norm, whether the arm has no size, its size, and the family of an arm without a size."""
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
