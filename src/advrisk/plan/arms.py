"""Arms from the entries of `arms`: parts by name, bound parameters, expanded grids."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from advrisk.core.errors import AdvriskError
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import did_you_mean
from advrisk.core.registries import Registries
from advrisk.core.registry import Part
from advrisk.core.traits import DETECTOR, TRANSFER, AttackTraits, CorruptionTraits, Norm, ObjectiveTraits
from advrisk.plan.defences import model_names
from advrisk.plan.grids import flat, grid, shown
from advrisk.plan.naming import named_arms, refuse_taken_names
from advrisk.study import CLEAN, Arm, ArmEntry, Loc, Source, StudySpec, validated

_BESIDE_PRESETS = ("keep", "max_queries", "repeats", "draws")  # these apply to every arm of a preset

Named = Mapping[str, tuple[str, ...]]  # names of detectors in a study -> their full names


def expand_arms(study: StudySpec, registries: Registries, detectors: Named | None = None) -> list[Arm]:
    """Every arm of a study, the clean one first, each once; `detectors` are those that an attack may know."""
    arms = {CLEAN.id: CLEAN}
    first = dict(arms)  # the first arm of each id, with those that craft points to transfer
    models, mistakes = model_names(study, registries), Mistakes()
    for index, entry in enumerate(study.arms):
        loc: Loc = ("arms", index)
        with mistakes.collect(), study.where.at(loc):
            expanded = list(expand_entry(entry, registries, detectors=detectors or {}))
            _check_surrogates(expanded, models)
            for arm in expanded:
                arms[arm.id] = _one_name(arms.setdefault(arm.id, arm), arm)
            refuse_taken_names({arm.id: arm.shown for arm in arms.values()}, "arm")
            for one in (one for arm in expanded for one in (arm, arm.crafted_by) if one is not None):
                if differing := _differing(first.setdefault(one.id, one), one):
                    raise AdvriskError(f"found the arm {one.id!r} twice with different {differing}")
    mistakes.refuse()
    return list(arms.values())


def _one_name(before: Arm, arm: Arm) -> Arm:
    """The earlier arm, with the name of either."""
    if before.name and arm.name and before.name != arm.name:
        raise AdvriskError(f"the arm {arm.id} has the names {before.name!r} and {arm.name!r}; remove one name")
    return replace(before, name=before.name or arm.name)


def entry_loc(arm: Arm, study: StudySpec, registries: Registries, detectors: Named | None = None) -> Loc:
    """The location of the entry of `arms` with this arm, or with a transfer of its points, for an error message."""
    for index, entry in enumerate(study.arms):
        for other in expand_entry(entry, registries, detectors=detectors or {}):
            if arm.id in (other.id, other.crafted_by and other.crafted_by.id):
                return ("arms", index)
    return ("arms",)


def _check_surrogates(arms: Iterable[Arm], models: Sequence[str]) -> None:
    for arm in arms:
        if arm.surrogate is not None and arm.surrogate not in models:
            raise AdvriskError(f"unknown model {arm.surrogate!r}; {did_you_mean(arm.surrogate, models)}")


def _differing(before: Arm, arm: Arm) -> str:
    names = [field.name for field in fields(Arm) if field.name not in ("name", "crafted_by")]
    if before.crafted_by and arm.crafted_by and _differing(before.crafted_by, arm.crafted_by):
        names.append("crafted_by")
    return " and ".join(name for name in names if getattr(before, name) != getattr(arm, name))


def expand_entry(
    entry: ArmEntry, registries: Registries, *, to_transfer: bool = False, detectors: Named | None = None
) -> list[Arm]:
    """The arms of one entry of `arms`; `detectors` are those that an attack may know."""
    expanded = _expanded(entry, registries, to_transfer=to_transfer, detectors=detectors)
    return named_arms(entry.name, expanded, _aliases(detectors or {}))


def _aliases(detectors: Named) -> dict[str, str]:
    """Full name of a detector -> the name that the study gives it, if any."""
    return {those[0]: name.rpartition("@")[0] for name, those in detectors.items() if "@" in name and name not in those}


def _expanded(entry: ArmEntry, registries: Registries, *, to_transfer: bool, detectors: Named | None) -> Iterator[Arm]:
    if entry.preset:
        yield from _from_presets(entry, registries, to_transfer=to_transfer, detectors=detectors)
    elif entry.arm:
        yield from _transfer_arms(entry, entry.arm, registries)
    elif entry.attack:
        for name in entry.attack:
            part = registries.attacks.get(name)
            if part.traits.watches:
                yield from _watching_arms(entry, part, registries, detectors)
            else:
                yield from _attack_arms(entry, entry.params, part, registries, to_transfer=to_transfer)
    else:
        for name in entry.corruption or ():
            yield from _corruption_arms(entry, registries.corruptions.get(name))


def _from_presets(
    entry: ArmEntry, registries: Registries, *, to_transfer: bool, detectors: Named | None
) -> Iterator[Arm]:
    options = _set_fields(entry, ("norm", "eps", "objective", "level"))
    lists = ("eps", "level")  # presets take these as lists
    settings = {key: value[0] if key not in lists and len(value) == 1 else value for key, value in options.items()}
    for name in entry.preset or ():
        preset = registries.presets.get(name)
        _check_preset(preset, options)
        for line in preset.function(**preset.bind(settings | entry.params, beside=_BESIDE_PRESETS)):
            common = _set_fields(entry, entry.model_fields_set.intersection(_BESIDE_PRESETS))
            if not _repeatable(line, registries):
                common.pop("repeats", None)
            line = line | ({"arm": line["arm"] | common} if "arm" in line else common)
            line_entry = validated(ArmEntry, line, Source())
            yield from expand_entry(line_entry, registries, to_transfer=to_transfer, detectors=detectors)


def _repeatable(line: Mapping[str, Any], registries: Registries) -> bool:
    """Whether a preset's line can be repeated: corruptions must be random; attacks are checked with their arms."""
    name = line.get("corruption")
    return not isinstance(name, str) or registries.corruptions.get(name).traits.random


def _set_fields(entry: ArmEntry, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(entry, name)) is not None}


def _check_preset(preset: Part[Any], options: Iterable[str]) -> None:
    for name in options:
        if name not in preset.parameters:
            allowed = ", ".join([*preset.parameters, *_BESIDE_PRESETS])
            raise AdvriskError(f"{preset.name} sets its own {name}; with this preset, set only {allowed}")


def _transfer_arms(entry: ArmEntry, crafting: ArmEntry, registries: Registries) -> Iterator[Arm]:
    part = registries.attacks.get(TRANSFER)
    for surrogate in entry.surrogates or ():
        for arm in expand_entry(crafting, registries, to_transfer=True):
            if arm.kind != "attack":
                raise AdvriskError(f"{arm.id} is no attack, so it has no points to transfer")
            yield replace(
                arm,
                id="-".join([part.name, surrogate, arm.id]),
                family=part.name,
                version=part.version,
                max_queries=None,
                params={"from": surrogate, "arm": arm.id},
                crafted_by=arm,
            )


def _watching_arms(
    entry: ArmEntry, part: Part[AttackTraits], registries: Registries, detectors: Named | None
) -> Iterator[Arm]:
    """The arms of an attack that knows a detector: one for each detector of the entry, with its name."""
    if detectors is None:
        raise AdvriskError(f"{part.name} knows a detector of its model, so it cannot be transferred or learned from")
    params = {key: value for key, value in entry.params.items() if key != DETECTOR}
    for full in _evaded_detectors(entry.params.get(DETECTOR), part, detectors):
        extra = f"{DETECTOR}={full.rpartition('@')[0]}"
        for arm in _attack_arms(entry, params, part, registries, to_transfer=False):
            head, *settings = arm.id.split(",")
            yield replace(arm, id=",".join([head, extra, *settings]), params={**arm.params, DETECTOR: full})


def _evaded_detectors(named: Any, part: Part[AttackTraits], detectors: Named) -> list[str]:
    """The full names of the detectors that an arm evades."""
    if not detectors:
        problem = f"{part.name} evades a detector, and this study has none"
        raise AdvriskError(f"{problem}; add `detectors: [confidence]` and, to this arm, `{DETECTOR}: confidence`")
    shown = [name for name in detectors if "@" not in name]
    if named is None or named == []:
        raise AdvriskError(f"{part.name} needs `{DETECTOR}`, the detector to evade: {', '.join(shown)}")
    full: dict[str, None] = {}
    for name in named if isinstance(named, list) else [named]:
        if not isinstance(name, str) or name not in detectors:
            hint = did_you_mean(str(name), shown)
            raise AdvriskError(f"{part.name}: unknown detector {name!r}; {hint}")
        full |= dict.fromkeys(detectors[name])
    return list(full)


def _attack_arms(
    entry: ArmEntry,
    params: Mapping[str, Any],
    part: Part[AttackTraits],
    registries: Registries,
    *,
    to_transfer: bool,
) -> Iterator[Arm]:
    traits = part.traits
    norms: list[Norm | None] = [*(entry.norm or traits.norms)] or [None]
    objectives: list[str | None] = [*entry.objective] if entry.objective else [traits.objective]
    _check_attack(entry, part)
    for name in objectives:
        _check_objective(entry, part, registries.objectives.get(name) if name else None)
    sizes: list[float | None] = [*entry.eps] if entry.eps else [None]
    # The first success lies just across the surrogate's boundary: it would seldom succeed on another model.
    keeps = entry.keep or ["strongest" if to_transfer and traits.keep == "first" else traits.keep]
    settings = [part.bind(choice, beside=ArmEntry.model_fields) for choice in grid(params, part)]
    for norm, eps, objective, keep, bound in itertools.product(norms, sizes, objectives, keeps, settings):
        words = [norm, shown(eps), objective]
        yield Arm(
            id=readable_id(part, words, bound, keep=keep, max_queries=entry.max_queries, draws=entry.draws),
            kind="attack",
            family=part.name,
            version=part.version,
            norm=norm,
            eps=eps,
            objective=objective,
            keep=keep,
            max_queries=entry.max_queries,
            repeats=entry.repeats,
            draws=entry.draws,
            params=traits.resolved(bound, norm, eps).params,
        )


def _check_attack(entry: ArmEntry, part: Part[AttackTraits]) -> None:
    traits = part.traits
    if entry.level is not None:
        raise AdvriskError(f"level is for corruptions; {part.name} is an attack, whose limit is eps")
    if not traits.norms:
        _check_without_norm(entry, part)
    if entry.norm is None and len(traits.norms) > 1:
        raise AdvriskError(f"{part.name} needs a norm: {', '.join(traits.norms)}")
    for norm in entry.norm or ():
        if norm not in traits.norms:
            raise AdvriskError(f"{part.name} has no norm {norm}, only {', '.join(traits.norms)}")
    if "l0" in (entry.norm or traits.norms) and any(0 < eps < 1 for eps in entry.eps or ()):
        raise AdvriskError(f"{part.name}: eps counts changed features in l0, and less than 1 allows none")
    if traits.needs_eps and entry.eps is None:
        raise AdvriskError(f"{part.name} needs eps, the size limit of the perturbation")
    if traits.objective is None and entry.objective:
        raise AdvriskError(f"{part.name} has no objective to choose")
    if traits.accounting == "batch":
        _check_counted_by_batch(entry, part)


def _check_without_norm(entry: ArmEntry, part: Part[AttackTraits]) -> None:
    for name in ("norm", "eps"):
        if getattr(entry, name) is not None:
            raise AdvriskError(f"{part.name} has no norm and no eps; remove `{name}`")
    if "smallest" in (entry.keep or ()):
        raise AdvriskError(f"{part.name} has no norm, so no smallest success; keep first, strongest or last")


def _check_counted_by_batch(entry: ArmEntry, part: Part[AttackTraits]) -> None:
    """Refuse options that need passes counted per sample."""
    if entry.draws > 1:
        raise AdvriskError(f"{part.name} queries the model itself, once per point; remove `draws`")
    if entry.max_queries is not None:
        remedy = "remove `max_queries` and give the attack fewer steps by its own settings"
        raise AdvriskError(f"{part.name} counts passes per batch, so it cannot stop single samples; {remedy}")
    for keep in entry.keep or ():
        if keep != part.traits.keep:
            raise AdvriskError(f"{part.name} returns one point per sample: keep {part.traits.keep}, not {keep}")


def _check_objective(entry: ArmEntry, part: Part[AttackTraits], objective: Part[ObjectiveTraits] | None) -> None:
    if objective is None:
        _check_repeats(entry, part.name, random=part.traits.random)
        return
    if part.traits.aims and not objective.traits.targeted:
        raise AdvriskError(f"{part.name} aims at classes, which the objective {objective.name} cannot")
    # Such an objective has no slope at the clean input, so attacks start at a random point near it.
    random = part.traits.random or objective.traits.from_clean
    _check_repeats(entry, f"{part.name} with the objective {objective.name}", random=random)


def _check_repeats(entry: ArmEntry, what: str, *, random: bool) -> None:
    if entry.repeats > 1 and not random:
        raise AdvriskError(f"{what} is not random: its {entry.repeats} repeats would be equal; remove `repeats`")


def _corruption_arms(entry: ArmEntry, part: Part[CorruptionTraits]) -> Iterator[Arm]:
    for name in ("norm", "eps", "objective", "keep", "max_queries"):
        if getattr(entry, name) is not None:
            raise AdvriskError(f"{name} is for attacks; {part.name} is a corruption")
    if entry.draws > 1:
        raise AdvriskError(f"draws is for attacks; {part.name} is a corruption, which the judge redraws anyway")
    _check_repeats(entry, part.name, random=part.traits.random)
    levels: list[int | None] = [*entry.level] if entry.level else [None]
    for level, params in itertools.product(levels, grid(entry.params, part)):
        strength = {} if level is None else _strength(part, level, params)
        bound = part.bind(strength | params, beside=["corruption", "level", "repeats"])
        shown = {name: value for name, value in bound.items() if name not in strength}
        yield Arm(
            id=readable_id(part, [f"level-{level}" if level else None], shown),
            kind="corruption",
            family=part.name,
            version=part.version,
            cause=part.traits.cause,
            repeats=entry.repeats,
            params=bound,
        )


def _strength(part: Part[CorruptionTraits], level: int, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a level of a corruption sets."""
    levels = part.traits.levels
    if not levels:
        raise AdvriskError(f"{part.name} has no levels; remove `level` and give its strength")
    if level > part.traits.n_levels:
        raise AdvriskError(f"{part.name} has levels from 1 to {part.traits.n_levels}, found {level}")
    for name in params:
        if name in levels:
            raise AdvriskError(f"{part.name}: found both `level` and `{name}`, which the level sets; remove one")
    return {name: values[level - 1] for name, values in levels.items()}


def entry_for(name: str, registries: Registries) -> tuple[str, int] | None:
    """The entry of `arms` for a name in a scenario, and its number of arms; None for an unknown name.

    The name is that of a corruption (`rain`), of one of its levels (`rain-level-2`), or of an attack or a preset, whose
    other settings the user must choose.
    """
    family, _, level = name.partition("-level-")
    if name in registries.attacks:
        return f"`- {{attack: {name}, …}}`", 1
    if name in registries.presets:
        return f"`- {{preset: {name}}}`", len(list(_preset_arms(name, registries))) or 1
    if family not in registries.corruptions:
        return None
    if level.isdecimal():
        return f"`- {{corruption: {family}, level: {level}}}`", 1
    part = registries.corruptions.get(family)
    levels = list(range(1, part.traits.n_levels + 1, 2))
    needed = [parameter.name for parameter in part.parameters.values() if parameter.required]
    strength = f", level: {levels}" if levels else "".join(f", {parameter}: …" for parameter in needed)
    return f"`- {{corruption: {name}{strength}}}`", max(1, len(levels))


def _preset_arms(name: str, registries: Registries) -> Iterator[Arm]:
    """The arms of a preset without settings; none if it needs some."""
    with contextlib.suppress(AdvriskError):
        yield from expand_entry(validated(ArmEntry, {"preset": name}, Source()), registries)


def readable_id(
    part: Part[Any],
    words: list[str | None],
    bound: Mapping[str, Any],
    *,
    keep: str | None = None,
    max_queries: int | None = None,
    draws: int = 1,
) -> str:
    """A readable, stable id: `pgd-linf-0.1-ace`, then all settings that differ from the defaults: `,steps=10`."""
    changed = {name: value for name, value in bound.items() if value != part.parameters[name].default}
    extras = [f"{name}={shown(value)}" for name, value in flat(changed)]
    if isinstance(part.traits, AttackTraits) and keep != part.traits.keep:
        extras.append(f"keep={keep}")
    if max_queries is not None:
        extras.append(f"max_queries={max_queries}")
    if draws > 1:
        extras.append(f"draws={draws}")
    return ",".join(["-".join([part.name, *filter(None, words)]), *extras])


def with_params(arm: Arm, part: Part[Any], params: Mapping[str, Any]) -> Arm:
    """The same attack with other parameters, and its id."""
    words = [arm.norm, shown(arm.eps), arm.objective]
    name = readable_id(part, words, params, keep=arm.keep, max_queries=arm.max_queries, draws=arm.draws)
    return replace(arm, id=name, params=dict(params))
