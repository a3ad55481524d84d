"""Models behind a defence from the section `defences`: parts by name, bound parameters, expanded grids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.core.errors import AdvriskError
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import did_you_mean
from advrisk.core.registries import Registries
from advrisk.plan.grids import grid, shown
from advrisk.study import TRAINED, DefenceSpec, Loc, ModelSpec, StudySpec


@dataclass(frozen=True)
class DefendedModel:
    """A model behind a defence: its name, the model inside, and the defence with its parameters."""

    name: str
    of: str
    defence: str
    params: Mapping[str, Any]
    tags: Mapping[str, str | int | float | bool]
    surrogate: bool
    loc: Loc


def expand_defences(study: StudySpec, registries: Registries) -> list[DefendedModel]:
    """Every defended model of a study, each after the model inside it."""
    defended: dict[str, DefendedModel] = {}
    of_key: dict[str, list[str]] = {}  # key of the section -> its models
    waiting = dict(study.defences)
    while waiting:
        defined = {name: [name] for name in [*study.models, *defended]} | of_key
        ready = {key: spec for key, spec in waiting.items() if all(name in defined for name in spec.of)}
        if not ready:
            _refuse_unresolved(study, waiting, defined)
        mistakes = Mistakes()
        for key, spec in ready.items():
            inside = [name for of in spec.of for name in defined[of]]
            with mistakes.collect():
                made = _made(study, key, spec, list(dict.fromkeys(inside)), registries)
                for one in made:
                    _refuse_taken(study, one, defended)
                    defended[one.name] = one
                of_key[key] = [one.name for one in made]
            del waiting[key]
        mistakes.refuse()
    return list(defended.values())


def model_names(study: StudySpec, registries: Registries) -> list[str]:
    """The names of all models of a study, with those behind a defence."""
    return [*study.models, *(one.name for one in expand_defences(study, registries))]


Tags = dict[str, str | int | float | bool]


def tags_of(
    study: StudySpec, defended: Sequence[DefendedModel], precisions: Mapping[str, str | None] | None = None
) -> dict[str, Tags]:
    """Model -> its tags; a defended model has those of the model inside, its defence, its parameters, and its own.

    Options of a model are tags, too, so that they can explain its risk. The names of stacked defences are joined by
    `+`; a parameter whose name is taken becomes `defence-parameter`. If one model states its `precision`, all models
    have that tag; `precisions` has those of the others.
    """
    tags: dict[str, Tags] = {name: _options(spec) | dict(spec.tags) for name, spec in study.models.items()}
    if any(spec.precision is not None for spec in study.models.values()):
        for name, spec in study.models.items():
            if (precision := spec.precision or (precisions or {}).get(name)) is not None:
                tags[name].setdefault("precision", precision)
    for one in defended:
        own = dict(tags[one.of])
        own["defence"] = f"{own['defence']}+{one.defence}" if "defence" in own else one.defence
        for name, value in one.params.items():
            if isinstance(value, str | int | float | bool):
                own[f"{one.defence}-{name}" if name in own else name] = value
        tags[one.name] = own | dict(one.tags)
    return tags


def _options(spec: ModelSpec) -> Tags:
    """Numbers among a model's options, and the arguments of its factory; no paths, no addresses."""
    args = spec.params.get("args")
    named: dict[str, Any] = dict(args) if isinstance(args, Mapping) else {}
    numbers = {name: value for name, value in spec.params.items() if isinstance(value, int | float) or name in named}
    return {name: value for name, value in (named | numbers).items() if isinstance(value, str | int | float | bool)}


def _made(
    study: StudySpec,
    key: str,
    spec: DefenceSpec,
    inside: Sequence[str],
    registries: Registries,
) -> list[DefendedModel]:
    """The models of one entry: one named by its key, or several with their differences appended."""
    loc: Loc = ("defences", key)
    if spec.name in TRAINED and spec.name not in registries.defences:
        raise study.where.error((*loc, "name"), TRAINED[spec.name])
    try:
        part = registries.defences.get(spec.name)
        choices = list(grid(spec.params, part))
        bound = [part.bind(choice, beside=DefenceSpec.model_fields) for choice in choices]
    except AdvriskError as error:
        raise study.where.error(loc, str(error)) from None
    listed = [name for name in spec.params if len({str(choice[name]) for choice in choices}) > 1]
    return [
        DefendedModel(
            "-".join([key, *_words(params, listed), *([of] if len(inside) > 1 else [])]),
            of,
            part.name,
            params,
            dict(spec.tags),
            spec.surrogate,
            loc,
        )
        for params in bound
        for of in inside
    ]


def _words(params: Mapping[str, Any], listed: Sequence[str]) -> Iterator[str]:
    for name in listed:
        yield str(shown(params[name]))


def _refuse_taken(study: StudySpec, one: DefendedModel, defended: Mapping[str, DefendedModel]) -> None:
    key = str(one.loc[-1])
    for name in (one.name, key):
        if name in study.models:
            raise study.where.error(one.loc, f"found a model {name!r}, too; give the defended model another name")
    if one.name in defended:
        other = defended[one.name].loc[-1]
        raise study.where.error(
            one.loc, f"makes a model {one.name!r}, and so does {other!r}; rename one, or list a value once"
        )


def _refuse_unresolved(
    study: StudySpec, waiting: Mapping[str, DefenceSpec], defined: Mapping[str, Sequence[str]]
) -> None:
    """Refuse unknown names, or entries that form a circle."""
    for key, spec in waiting.items():
        for name in spec.of:
            if name not in defined and name not in waiting:
                hint = did_you_mean(name, [*defined, *waiting])
                raise study.where.error(("defences", key, "of"), f"unknown model {name!r}; {hint}")
    key = next(iter(waiting))
    circle = [key]
    while (after := next(name for name in waiting[circle[-1]].of if name not in defined)) not in circle:
        circle.append(after)
    path = " of ".join([*circle[circle.index(after) :], after])
    raise study.where.error(("defences", key, "of"), f"defences form a circle: {path}; let one be of a model")
