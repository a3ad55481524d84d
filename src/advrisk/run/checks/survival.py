"""Check what a study asks of survival before anything runs, so that no mistake is reported after all the work."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.assess.survival.covariates import CLASS, OF_ARM, OF_MODEL, PLAIN_LEVELS, refuse_outcome
from advrisk.core.errors import RiskError
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import did_you_mean, matches, no_match
from advrisk.study import Arm, StudySpec

_PLACE = ("assess", "survival")
_TEXT_OF_ARM = ("attack", "norm", "objective", "arm")

Tags = Mapping[str, Any]


def refuse_survival(
    study: StudySpec, arms: Sequence[Arm], tags: Mapping[str, Tags], strata: Mapping[str, Iterable[str]]
) -> None:
    """Patterns that no attack fits, a norm that none has, unknown covariates, and reference levels that do not occur.

    `tags` are those of each model that is assessed; `strata` holds the values of each stratum, and `class` the labels,
    of the samples to evaluate. What a search will find has no name yet: patterns of a study that searches are not
    checked, nor are levels of its attacks.
    """
    asked, mistakes = study.assess.survival, Mistakes()
    attacks = [arm for arm in arms if arm.kind == "attack"]
    if asked.arms is not None and not study.search:
        for pattern in asked.arms:
            if complaint := no_match(pattern, {arm.shown for arm in attacks}):
                mistakes.add(study.where.error((*_PLACE, "arms"), complaint))
        attacks = [arm for arm in attacks if matches(arm.shown, asked.arms)]
    norms = {arm.norm for arm in attacks if arm.norm is not None}
    if asked.norm is not None and asked.norm not in norms and not study.search:
        known = f"there are attacks in {', '.join(sorted(norms))}" if norms else "no attack that counts has a norm"
        mistakes.add(study.where.error((*_PLACE, "norm"), f"no attack that counts is in {asked.norm}; {known}"))
    own = {f"{prefix}{tag}" for one in tags.values() for tag in one for prefix in ("", "tags.")}
    own |= {f"{prefix}{name}" for name in strata for prefix in ("", "strata.")}
    known_names = [*OF_ARM, *OF_MODEL, CLASS, *sorted(own)]
    for key, names in (("covariates", asked.covariates or []), ("shape_covariates", asked.shape_covariates)):
        for place, name in enumerate(names):
            if complaint := _no_covariate(name, known_names):
                mistakes.add(study.where.error((*_PLACE, key, place), complaint))
    named = None if asked.covariates is None else [*asked.covariates, *asked.shape_covariates]
    for key, names in (("reference", list(asked.reference)), ("units", list(asked.units))):
        for name in names:
            complaint = _no_covariate(name, known_names if named is None else named)
            if complaint:
                mistakes.add(study.where.error((*_PLACE, key, name), complaint))
    mistakes.refuse()
    _refuse_levels(study, _levels(attacks, tags, strata))


def _levels(
    attacks: Sequence[Arm], tags: Mapping[str, Tags], strata: Mapping[str, Iterable[str]]
) -> dict[str, set[str] | None]:
    """Covariate -> its levels; None where it is a number."""
    of_tags = _levels_of_tags(list(tags.values()))
    return {
        **{f"{prefix}{name}": set(values) for name, values in strata.items() for prefix in ("", "strata.")},
        **{f"{prefix}{name}": values for name, values in of_tags.items() for prefix in ("", "tags.")},
        **dict.fromkeys((*OF_ARM, *OF_MODEL)),
        **_levels_of_arms(attacks),
        "model": set(tags),
    }


def _levels_of_arms(attacks: Sequence[Arm]) -> dict[str, set[str]]:
    return {
        "attack": {arm.family for arm in attacks},
        "norm": {arm.norm for arm in attacks if arm.norm is not None},
        "objective": {arm.objective for arm in attacks if arm.objective is not None},
        "arm": {arm.shown for arm in attacks},
    }


def _levels_of_tags(tags: Sequence[Tags]) -> dict[str, set[str] | None]:
    found: dict[str, set[str] | None] = {}
    for name in dict.fromkeys(name for own in tags for name in own):
        values = {own.get(name, PLAIN_LEVELS.get(name)) for own in tags} - {None}
        found[name] = None if all(isinstance(value, bool | int | float) for value in values) else set(map(str, values))
    return found


def _refuse_levels(study: StudySpec, levels: Mapping[str, set[str] | None]) -> None:
    """Reference levels that nothing in the study has, levels of numbers, and units of text."""
    for name in study.assess.survival.units:
        if levels[name] is not None:
            complaint = f"{name} is text, and only numbers have a unit; leave it out"
            raise study.where.error((*_PLACE, "units", name), complaint)
    for name, level in study.assess.survival.reference.items():
        known = levels[name]
        place = (*_PLACE, "reference", name)
        if known is None:
            raise study.where.error(place, f"{name} is a number, and only text has a reference level; leave it out")
        if level not in known and not (study.search and name in _TEXT_OF_ARM):
            raise study.where.error(place, f"no {name} is {level!r}; {did_you_mean(level, known)}")


def _no_covariate(name: str, known: Sequence[str]) -> str:
    """Why this is no covariate; empty where it is one."""
    try:
        refuse_outcome(name)
    except RiskError as error:
        return str(error)
    return "" if name in known else f"no covariate is called {name!r}; {did_you_mean(name, known)}"
