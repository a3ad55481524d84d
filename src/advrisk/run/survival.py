"""Check what a study asks of survival before anything runs, so that no mistake is reported after all the work."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean, matches, no_match
from advrisk.risk.survival.covariates import CLASS, OF_ARM, OF_MODEL, PLAIN_LEVELS, refuse_outcome
from advrisk.study import Arm, StudySpec

_PLACE = ("assess", "survival")


def refuse_survival(
    study: StudySpec, arms: Sequence[Arm], tags: Sequence[Mapping[str, Any]], strata: Iterable[str]
) -> None:
    """Patterns that no attack fits, a norm that none has, unknown covariates, and reference levels that do not occur.

    What a search will find has no name yet, so that patterns of a study that searches are not looked at.
    """
    asked = study.assess.survival
    attacks = [arm for arm in arms if arm.kind == "attack"]
    if asked.arms is not None and not study.search:
        for pattern in asked.arms:
            if complaint := no_match(pattern, {arm.shown for arm in attacks}):
                raise study.where.error((*_PLACE, "arms"), complaint)
        attacks = [arm for arm in attacks if matches(arm.shown, asked.arms)]
    norms = {arm.norm for arm in attacks if arm.norm is not None}
    if asked.norm is not None and asked.norm not in norms and not study.search:
        known = f"there are attacks in {', '.join(sorted(norms))}" if norms else "no attack that counts has a norm"
        raise study.where.error((*_PLACE, "norm"), f"no attack that counts is in {asked.norm}; {known}")
    own = {f"{prefix}{tag}" for one in tags for tag in one for prefix in ("", "tags.")}
    own |= {f"{prefix}{name}" for name in strata for prefix in ("", "strata.")}
    known_names = [*OF_ARM, *OF_MODEL, CLASS, *sorted(own)]
    for key, names in (("covariates", asked.covariates or []), ("shape_covariates", asked.shape_covariates)):
        for place, name in enumerate(names):
            if complaint := _no_covariate(name, known_names):
                raise study.where.error((*_PLACE, key, place), complaint)
    named = None if asked.covariates is None else [*asked.covariates, *asked.shape_covariates]
    for key, names in (("reference", list(asked.reference)), ("units", list(asked.units))):
        for name in names:
            complaint = _no_covariate(name, known_names if named is None else named)
            if complaint:
                raise study.where.error((*_PLACE, key, name), complaint)
    _refuse_levels(study, attacks, tags)


def _refuse_levels(study: StudySpec, attacks: Sequence[Arm], tags: Sequence[Mapping[str, Any]]) -> None:
    """Reference levels of attacks, norms and tags that nothing in the study has."""
    levels: dict[str, set[str]] = {
        "attack": {arm.family for arm in attacks},
        "norm": {arm.norm for arm in attacks if arm.norm is not None},
        "arm": {arm.id for arm in attacks},
    }
    for own in tags:
        for name, value in own.items():
            levels.setdefault(name, set()).add(str(value))
    for name, plain in PLAIN_LEVELS.items():
        if any(name not in own for own in tags):
            levels.setdefault(name, set()).add(plain)
    for name, level in study.assess.survival.reference.items():
        known = levels.get(name.removeprefix("tags."))
        if known is not None and level not in known and not study.search:
            complaint = f"no {name} is {level!r}; {did_you_mean(level, sorted(known))}"
            raise study.where.error((*_PLACE, "reference", name), complaint)


def _no_covariate(name: str, known: Sequence[str]) -> str:
    """Why this is no covariate; empty where it is one."""
    try:
        refuse_outcome(name)
    except RiskError as error:
        return str(error)
    return "" if name in known else f"no covariate is called {name!r}; {did_you_mean(name, known)}"
