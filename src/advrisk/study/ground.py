"""What requirements may speak of: the models, detectors, sizes and scenarios of a study, or of a run that holds them.

A requirement that nobody can answer is refused before anything runs, and in the same words once it has.
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
    "damage here is relative to the compared models, no probability: hold it against another model "
    "(`damage.A <= damage.B`), or say what goes unnoticed (`evasion` or `detector` in assess.damage)"
)


@dataclass(frozen=True)
class Ground:
    """What there is to be required of."""

    models: Sequence[str]
    norm: str = "linf"  # in which sizes count
    criterion: str = "label"  # what success is judged by
    sizes: Collection[float] = ()  # eps of the attacks in that norm
    endless: bool = False  # an attack in that norm has no eps
    relative: bool = True  # damage is relative: neither an evasion curve nor a detector is named
    has_cost: bool = False
    refuses: bool = True  # some model may refuse to answer
    detectors: Collection[str] = ()  # what they may be called
    scenarios: Sequence[str] = ()
    losses: Sequence[str] = ()
    certified: bool = False
    certified_sizes: Collection[float] | None = None  # None: not known before it runs
    flags: Collection[str] = tuple(FLAGS)
    written: Mapping[float, str] = field(default_factory=dict)  # size -> how the study writes it


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
    """What a study says itself, beside what its plan or its rows do; `detectors` by their full names.

    `damage` and `criterion` are the study's where there is one.
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
    """What detectors may be called -> the full names (`lid,neighbours=10@1a2b3c4d`) of those that are meant.

    A readable or full name means one; a part's name means all of that part, unless one of them is called just so.
    """
    found: dict[str, tuple[str, ...]] = {
        name: (full,) for full in detectors for name in (full.rpartition("@")[0], full)
    }
    parts = {full: full.rpartition("@")[0].partition(",")[0] for full in detectors}
    for part in dict.fromkeys(parts.values()):
        found.setdefault(part, tuple(full for full, own in parts.items() if own == part))
    return found


def expanded(requirement: Requirement, ground: Ground) -> list[Requirement]:
    """The requirement, or one for each model where it is of all of them; what cannot be answered is refused."""
    left = requirement.left
    if not left.every:
        found = [requirement]
    else:
        other = requirement.right.subject if requirement.right else None
        found = [requirement.named(model) for model in ground.models if model != other]
        if not found:
            raise StudyError(f"`{requirement}`: there is no other model; found {other!r} alone")
    for one in found:
        for term in one.terms:
            _check(one, term, ground)
    return [_filled(one, ground) for one in found]


def _check(requirement: Requirement, term: Term, ground: Ground) -> None:
    complaint = _CHECKS.get(term.quantity, _of_model)(requirement, term, ground)
    if complaint:
        raise StudyError(f"`{requirement}`: {complaint}")


def unknown_model(term: Term, models: Sequence[str]) -> str:
    """The complaint about a model that does not exist; empty where it does, or none is named."""
    if term.subject is None or term.subject in models:
        return ""
    return f"no model is called {term.subject!r}; {did_you_mean(term.subject, models)}"


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
        return f"{_NO_CURVE}; found the margin {requirement.limit_text}, which means nothing between relative numbers"
    return ""


def _of_cost(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    if ground.relative or not ground.has_cost:
        return "found no cost: say what one damage costs (`cost` in assess.damage, beside `evasion` or `detector`)"
    return _of_attacks(ground)


def _of_sizes(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground) or _of_attacks(ground):
        return complaint
    largest = max(ground.sizes, default=0.0)
    if ground.endless or term.size is None or term.size <= largest:
        return ""
    return (
        f"no attack in {ground.norm} was allowed a size of {term.size_text}: found "
        f"{size_text(largest, ground.written)} as the largest eps; what was not tried is not known"
    )


def _of_robustness(requirement: Requirement, term: Term, ground: Ground) -> str:
    if ground.criterion == "target":
        return (
            "found a target for success: a sample that is driven to another wrong class counts as unbroken, so nobody "
            "knows which stay right; require `broken`, or run without a target"
        )
    return _of_sizes(requirement, term, ground)


def _of_attacks(ground: Ground) -> str:
    return "" if ground.sizes or ground.endless else f"found no attack in {ground.norm}, so nothing was tried"


def _of_refusals(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    return "" if ground.refuses else "found no model that refuses to answer"


def _of_risk(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    if not ground.scenarios:
        return "found no scenario: describe the deployment under `scenarios` in the study"
    given = dict(zip(term.what.inside, term.inside, strict=False))
    for kind, known in (("scenario", ground.scenarios), ("loss", ground.losses)):
        name = given.get(kind)
        if name is not None and name not in known:
            return f"no {kind} is called {name!r}; {did_you_mean(name, known)}"
        if name is None and len(known) > 1 and requirement.left is term:
            example = f"risk.{quoted(term.subject or '')}[{', '.join(quoted(one[0]) for one in _examples(ground))}]"
            return f"found several {'losses' if kind == 'loss' else 'scenarios'}: say which, as in {example}"
    return ""


def _examples(ground: Ground) -> list[Sequence[str]]:
    return [ground.scenarios, ground.losses] if len(ground.losses) > 1 else [ground.scenarios]


def _of_detector(_: Requirement, term: Term, ground: Ground) -> str:
    if term.subject not in ground.detectors:
        hint = did_you_mean(term.subject, ground.detectors) if ground.detectors else "the study has none"
        return f"no detector is called {term.subject!r}; {hint}"
    if term.inside and term.inside[0] not in ground.models:
        return f"no model is called {term.inside[0]!r}; {did_you_mean(term.inside[0], ground.models)}"
    if not term.inside and len(ground.models) > 1:
        return f"found several models: say which, as in {term}[{quoted(ground.models[0])}], or {term}[*] for all"
    return ""


def _of_certificate(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    if not ground.certified:
        return "found no certificate: ask for it in the study, as in `assess: {certificate: {alpha: 0.1, zeta: 0.05}}`"
    if term.size is not None and ground.certified_sizes is not None and term.size not in ground.certified_sizes:
        known = ", ".join(size_text(size, ground.written) for size in sorted(ground.certified_sizes))
        return f"nothing was certified at {term.size_text}; known: {known or 'no size'}"
    return ""


def _of_flags(requirement: Requirement, term: Term, ground: Ground) -> str:
    if complaint := _of_model(requirement, term, ground):
        return complaint
    flag = term.inside[0] if term.inside else None
    return (
        ""
        if flag is None or flag in ground.flags
        else f"no flag is called {flag!r}; {did_you_mean(flag, ground.flags)}"
    )


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
    """With the only model of a detector, which need not be named."""
    left = requirement.left
    if left.what.of != "detector" or left.inside:
        return requirement
    return replace(requirement, left=replace(left, inside=(ground.models[0],)))
