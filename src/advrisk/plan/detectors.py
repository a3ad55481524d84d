"""Configured detectors from the entries of `detectors`: parts by name, bound parameters, expanded grids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advrisk.core.digest import digest
from advrisk.core.errors import AdvriskError, RegistryError
from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.core.registry import Part
from advrisk.core.traits import Capability, DetectorTraits, gives
from advrisk.plan.arms import expand_entry, readable_id
from advrisk.plan.card import ModelCard
from advrisk.plan.grids import grid
from advrisk.plan.naming import detector_facets, distinguishing_names, refuse_taken_names
from advrisk.plan.recipe import recipe_of
from advrisk.study import Arm, ArmEntry, DetectorSpec, Loc, StudySpec, called_so, detector_names

# The default attack that a detector learns from: MEAD trains its detectors on it.
LEARNED_ATTACK = ArmEntry(attack=["pgd"], norm=["linf"], eps=[0.03125], keep=["last"])

# For error messages: an attack that a model of this capability can answer, also on tables.
_ANSWERED: Mapping[Capability, str] = {
    "labels": "{attack: hopskipjump, norm: linf, eps: 0.1}",
    "scores": "{attack: nes, norm: linf, eps: 0.1}",
    "gradients": "{attack: pgd, norm: linf, eps: 0.1}",
}


@dataclass(frozen=True)
class ConfiguredDetector:
    """A detector with all its parameters. `id`, its name in the ledger, is a readable name, `@`, and a digest."""

    id: str
    name: str
    params: Mapping[str, Any]
    loc: Loc  # in the study
    arms: tuple[Arm, ...] = ()  # whose successes it learns from
    from_python: bool = False  # a Python object, without registered traits
    alias: str | None = None  # its name in the study: shown instead of its settings; no part of the digest

    @property
    def readable(self) -> str:
        """The name that people see and refer to."""
        return self.alias or self.id.rpartition("@")[0]

    @property
    def shown(self) -> str:
        """The full name, with the readable name in it."""
        return f"{self.readable}@{self.id.rpartition('@')[2]}"


def expand_detectors(study: StudySpec, registries: Registries, *, examples: str = "") -> list[ConfiguredDetector]:
    """Every detector of a study, each once; `examples` is a digest of the samples to learn from and of their space."""
    expanded: dict[str, ConfiguredDetector] = {}
    mistakes = Mistakes()
    for index, spec in enumerate(study.detectors):
        loc: Loc = ("detectors", index)
        with mistakes.collect(), study.where.at(loc):
            for one in _named(spec.name, _configured(spec, study, registries, examples, loc)):
                first = expanded.setdefault(one.id, one)
                expanded[one.id] = replace(first, alias=_one_alias(first, one))
            refuse_taken_names({one.id.rpartition("@")[0]: one.readable for one in expanded.values()}, "detector")
    mistakes.refuse()
    return list(expanded.values())


def names_of(detectors: Sequence[ConfiguredDetector]) -> dict[str, tuple[str, ...]]:
    """Names that a study may use -> the full names of the detectors."""
    of = {one.shown: one.id for one in detectors}
    return {name: tuple(of[full] for full in those) for name, those in detector_names(list(of)).items()}


def _named(name: str | None, detectors: Sequence[ConfiguredDetector]) -> list[ConfiguredDetector]:
    if name is None:
        return list(detectors)
    names = distinguishing_names(name, {one.id: detector_facets(one.params, one.arms) for one in detectors})
    return [replace(one, alias=names[one.id]) for one in detectors]


def _one_alias(first: ConfiguredDetector, one: ConfiguredDetector) -> str | None:
    if first.alias and one.alias and first.alias != one.alias:
        problem = f"has the names {first.alias!r} and {one.alias!r}; remove one name"
        raise AdvriskError(f"the detector {one.id.rpartition('@')[0]} {problem}")
    return first.alias or one.alias


def detector_id(readable: str, decisive: Any) -> str:
    """The readable name and a short digest of everything besides the model that decides a score."""
    return f"{readable}@{digest(decisive)[:8]}"


def refuse_detectors(
    study: StudySpec, registries: Registries, configured: Sequence[ConfiguredDetector], models: Sequence[ModelCard]
) -> None:
    """Refuse detectors that lack examples, or that a model cannot answer."""
    mistakes = Mistakes()
    for one in configured:
        if one.from_python:
            continue
        traits = registries.detectors.get(one.name).traits
        if traits.learns and not study.data.train:
            problem = f"{one.name} learns from samples of the split `train`, and the study has none"
            mistakes.add(study.where.error(("data",), f"{problem}; add, for example, `train: 1000`"))
        for model in (model for model in models if not model.surrogate):
            if problem := _lacking(one, traits, model):
                mistakes.add(study.where.error(one.loc, f"{problem}; remove it, or that model"))
            elif problem := _unlearnable(one, model, registries):
                others = f"let it learn from others, as in {{name: {one.name}, arms: [{_ANSWERED[model.capability]}]}}"
                mistakes.add(study.where.error(one.loc, f"{problem}; {others}, or remove it, or that model"))
    mistakes.refuse()


def _lacking(one: ConfiguredDetector, traits: DetectorTraits, model: ModelCard) -> str:
    """The unmet need of a detector for a model, in a sentence; "" if there is none."""
    if not gives(model.capability, traits.needs):
        return f"{one.name} needs {traits.needs} of a model, but {model.name} gives {model.capability} only"
    if traits.images and not model.takes_images:
        return f"{one.name} is for images (channels × height × width), which {model.name} does not take"
    if reason := model.opaque.get(one.id):
        return f"{one.name} reads hidden layers, but {reason}"
    if traits.dropout and model.undropped:
        return f"{one.name} switches dropout on, but {model.undropped}"
    return ""


def _unlearnable(one: ConfiguredDetector, model: ModelCard, registries: Registries) -> str:
    """The unmet need of the attacks that a detector learns from, in a sentence; "" if there is none."""
    for arm in one.arms:
        attack = registries.attacks.get(arm.family).traits
        needs = attack.resolved(arm.params, arm.norm, arm.eps).needs
        if not gives(model.capability, needs):
            capability = f"{model.name} gives {model.capability} only"
            return f"{one.name} learns from {arm.id}, which needs {needs} of a model, but {capability}"
        if attack.images and not model.takes_images:
            return f"{one.name} learns from {arm.id}, which is for images, and {model.name} does not take them"
    return ""


def _configured(
    spec: DetectorSpec, study: StudySpec, registries: Registries, examples: str, loc: Loc
) -> list[ConfiguredDetector]:
    _refuse_readable(spec.detector, registries)
    try:
        part = registries.detectors.get(spec.detector)
    except RegistryError as error:
        raise RegistryError(f"{error} {called_so(spec.detector)}") from None
    arms = _learned_arms(spec, part, registries)
    words = []
    if spec.arms is not None and arms != _expanded([LEARNED_ATTACK], registries):
        words = [f"arms={'+'.join(arm.id for arm in arms)}"]
    configured = []
    for params in grid(spec.params, part):
        beside = ["detector", "name", *(["arms"] if part.traits.learns == "attacks" else [])]
        bound = part.bind(params, folder=study.where.folder, beside=beside)
        decisive = {"name": part.name, "version": part.version, "params": _plain(bound)}
        if part.traits.learns:
            recipes = [recipe_of(study, registries, "", arm, "") for arm in arms]  # without model and space
            decisive |= {"arms": recipes, "examples": examples, "seed": study.seed}
        readable = ",".join([readable_id(part, [], bound), *words])
        configured.append(ConfiguredDetector(detector_id(readable, decisive), part.name, bound, loc, arms))
    return configured


def _refuse_readable(name: str, registries: Registries) -> None:
    """Refuse a name as the ledger shows it, with settings in it: a study writes them as keys."""
    part, *settings = name.partition("@")[0].split(",")
    if settings and part in registries.detectors:
        pairs = [setting.partition("=") for setting in settings]
        several = {name: f"[{value.replace('+', ', ')}]" if "+" in value else value for name, _, value in pairs}
        written = "".join(f", {name}: {value}" for name, value in several.items())
        raise AdvriskError(f"found {name!r}, as a ledger shows it; in a study write {{name: {part}{written}}}")


def _learned_arms(spec: DetectorSpec, part: Part[DetectorTraits], registries: Registries) -> tuple[Arm, ...]:
    if part.traits.learns != "attacks":
        if spec.arms is not None:
            raise AdvriskError(f"{part.name} does not learn from attacks; remove its `arms`")
        return ()
    arms = _expanded(spec.arms or [LEARNED_ATTACK], registries)
    for arm in arms:
        if arm.kind != "attack" or arm.crafted_by is not None:
            raise AdvriskError(f"{part.name} learns from attacks on the model itself, and {arm.id} is none")
        if arm.name is not None:
            raise AdvriskError(f"{part.name} learns from {arm.id}, which no table shows; remove its `name`")
        if arm.repeats > 1:
            raise AdvriskError(f"{part.name} learns from {arm.id} once; remove its `repeats`")
    return arms


def _expanded(entries: Sequence[ArmEntry], registries: Registries) -> tuple[Arm, ...]:
    return tuple({arm.id: arm for entry in entries for arm in expand_entry(entry, registries)}.values())


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in params.items()}
