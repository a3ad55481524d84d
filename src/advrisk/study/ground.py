"""Checks of requirements against the models, detectors, sizes and scenarios of a study or a run.

A requirement that cannot be answered is refused before anything runs, and with the same message afterwards.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from advrisk.core.errors import StudyError
from advrisk.core.flags import FLAGS
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import size_text
from advrisk.study.assess import AVERAGE, DamageSpec
from advrisk.study.gate import Requirement, Term, quoted
from advrisk.study.registered import CERTIFIED
from advrisk.study.spec import StudySpec

_NO_CURVE = (
    "damage is relative to the compared models here, no probability: compare it with another model "
    "(`damage.A <= damage.B`), or set `evasion` or `detector` in assess.damage"
)


@dataclass(frozen=True)
class Ground:
    """The names and sizes that requirements may use."""

    models: Sequence[str]
    norm: str = "linf"  # of sizes
    criterion: str = "label"  # of success
    sizes: Collection[float] = ()  # eps of the attacks in that norm
    endless: bool = False  # an attack in that norm has no eps
    relative: bool = True  # damage is relative: neither an evasion curve nor a detector is named
    has_cost: bool = False
    refuses: bool = True  # some model may refuse to answer
    detectors: Collection[str] = ()  # their names
    scenarios: Sequence[str] = ()
    losses: Sequence[str] = ()
    certified: bool = False
    certified_sizes: Collection[float] | None = None  # None: unknown before it runs
    flags: Collection[str] = tuple(FLAGS)
    written: Mapping[float, str] = field(default_factory=dict)  # size -> its text in the study


def study_ground(
    study: StudySpec | None,
    *,
    models: Sequence[str],
    damage: DamageSpec,
    sizes: Collection[float],
    endless: bool,
    refuses: bool,
    detectors: Sequence[str],
    losses: Sequence[str],
    criterion: str = "label",
) -> Ground:
    """The ground of a study, with values from its plan or rows; `detectors` are full names.

    `damage` and `criterion` are the study's if there is one.
    """
    return Ground(
        models=models,
        written=study.written if study else {},
        norm=damage.norm,
        criterion=study.criterion if study else criterion,
        sizes=sizes,
        endless=endless,
        relative=damage.evasion in (None, AVERAGE) and damage.detector is None,
        has_cost=damage.cost is not None,
        refuses=refuses,
        detectors=[name for name, full in detector_names(detectors).items() if len(full) == 1],
        scenarios=list(study.scenarios) if study else (),
        losses=losses,
        certified=study is not None and study.assess.certificate is not None,
    )


def detector_names(detectors: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Names that a study may use -> the full names of the detectors (`lid,neighbours=10@1a2b3c4d`).

    A readable or full name means one; a part's name means all of that part, unless it is the name of one of them.
    """
    names: dict[str, tuple[str, ...]] = {
        name: (full,) for full in detectors for name in (full.rpartition("@")[0], full)
    }
    parts = {full: full.rpartition("@")[0].partition(",")[0] for full in detectors}
    for part in dict.fromkeys(parts.values()):
        names.setdefault(part, tuple(full for full, own in parts.items() if own == part))
    return names


def expanded(requirement: Requirement, ground: Ground) -> list[Requirement]:
    """The requirement, or one for each model if it has `*`; refuses those that cannot be answered."""
    left = requirement.left
    if not left.every:
        requirements = [requirement]
    else:
        other = requirement.right.subject if requirement.right else None
        requirements = [requirement.named(model) for model in ground.models if model != other]
        if not requirements:
            raise StudyError(f"`{requirement}`: there is no other model; found {other!r} alone")
    for one in requirements:
        for term in one.terms:
            _check(one, term, ground)
    return [_filled(one, ground) for one in requirements]


def _check(requirement: Requirement, term: Term, ground: Ground) -> None:
    complaint = _CHECKS.get(term.quantity, _of_model)(requirement, term, ground)
    if complaint:
        raise StudyError(f"`{requirement}`: {complaint}")


def unknown_model(term: Term, models: Sequence[str]) -> str:
    """The complaint about a model that does not exist; empty where it does, or none is named."""
    if term.subject is None or term.subject in models:
        return ""
    return f"unknown model {term.subject!r}; {did_you_mean(term.subject, models)}"


def _of_model(_: Requirement, term: Term, ground: Ground) -> str:
    return unknown_model(term, ground.models)


def _of_damage(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground) or _of_attacks(ground):
        return complaint
    if not ground.relative:
        return ""
    if requirement.right is None:
        return f"{_NO_CURVE}; found the limit {requirement.limit_text}"
    if requirement.limit:
        return f"{_NO_CURVE}; found the margin {requirement.limit_text}, which has no meaning for relative numbers"
    return ""


def _of_cost(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    if ground.relative or not ground.has_cost:
        return "found no cost: set `cost` in assess.damage, the cost of one damage, and `evasion` or `detector`"
    return _of_attacks(ground)


def _of_sizes(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground) or _of_attacks(ground):
        return complaint
    largest = max(ground.sizes, default=0.0)
    if ground.endless or term.size is None or term.size <= largest:
        return ""
    return (
        f"no attack in {ground.norm} reaches the size {term.size_text}: found "
        f"{size_text(largest, ground.written)} as the largest eps; add a larger eps, or require a smaller size"
    )


def _of_robustness(requirement: Requirement, term: Term, ground: Ground) -> str:
    if ground.criterion == "target":
        return (
            "found a target for success: attacks towards a target do not show which samples stay correct; require "
            "`broken`, or run without a target"
        )
    return _of_sizes(requirement, term, ground)


def _of_attacks(ground: Ground) -> str:
    return "" if ground.sizes or ground.endless else f"found no attack in {ground.norm}; add one to `arms`"


def _of_refusals(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    return "" if ground.refuses else "found no model that refuses to answer"


def _of_risk(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    if not ground.scenarios:
        return "found no scenario: describe the deployment under `scenarios` in the study"
    brackets = dict(zip(term.what.inside, term.inside, strict=False))
    for kind, names in (("scenario", ground.scenarios), ("loss", ground.losses)):
        name = brackets.get(kind)
        if name is not None and name not in names:
            return f"unknown {kind} {name!r}; {did_you_mean(name, names)}"
        if name is None and len(names) > 1 and requirement.left is term:
            example = f"risk.{quoted(term.subject or '')}[{', '.join(quoted(one[0]) for one in _examples(ground))}]"
            return f"found several {'losses' if kind == 'loss' else 'scenarios'}: name one, as in {example}"
    return ""


def _examples(ground: Ground) -> list[Sequence[str]]:
    return [ground.scenarios, ground.losses] if len(ground.losses) > 1 else [ground.scenarios]


def _of_detector(_: Requirement, term: Term, ground: Ground) -> str:
    if term.subject not in ground.detectors:
        hint = did_you_mean(term.subject, ground.detectors) if ground.detectors else "the study has none"
        return f"unknown detector {term.subject!r}; {hint}"
    if term.inside and term.inside[0] not in ground.models:
        return f"unknown model {term.inside[0]!r}; {did_you_mean(term.inside[0], ground.models)}"
    if not term.inside and len(ground.models) > 1:
        return f"found several models: name one, as in {term}[{quoted(ground.models[0])}], or write {term}[*] for all"
    return ""


def _of_certificate(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    if not ground.certified:
        return "found no certificate: add it to the study, as in `assess: {certificate: {alpha: 0.1, zeta: 0.05}}`"
    if term.size is not None and ground.certified_sizes is not None and term.size not in ground.certified_sizes:
        sizes = ", ".join(size_text(size, ground.written) for size in sorted(ground.certified_sizes))
        return f"found no certificate at {term.size_text}; certified: {sizes or 'no size'}"
    return ""


def _of_flags(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    flag = term.inside[0] if term.inside else None
    return "" if flag is None or flag in ground.flags else f"unknown flag {flag!r}; {did_you_mean(flag, ground.flags)}"


_CHECKS = {
    "damage": _of_damage,
    "cost": _of_cost,
    "broken": _of_sizes,
    "robust_accuracy": _of_robustness,
    "clean_rejection": _of_refusals,
    "risk": _of_risk,
    "auroc": _of_detector,
    "fpr": _of_detector,
    **dict.fromkeys(CERTIFIED, _of_certificate),
    "flagged": _of_flags,
}


def _filled(requirement: Requirement, ground: Ground) -> Requirement:
    """The requirement with the only model filled in for a detector, where the user may leave it out."""
    left = requirement.left
    if left.what.of != "detector" or left.inside:
        return requirement
    return replace(requirement, left=replace(left, inside=(ground.models[0],)))
