"""From a study to cells: the units of work, each named by everything that decides its result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from advrisk.core.digest import digest
from advrisk.core.names import did_you_mean
from advrisk.core.registries import Registries
from advrisk.core.traits import Capability, gives
from advrisk.plan.arms import expand_arms, place_of
from advrisk.plan.samples import Shard
from advrisk.study import Arm, StudySpec, TargetSpec

# Rises when the probe or the judge change what a row says: older cells are then run again.
RUNNER_VERSION = 3


@dataclass(frozen=True)
class ModelCard:
    """What planning needs to know of a loaded model."""

    name: str
    digest: str
    capability: Capability
    n_classes: int
    takes_images: bool = True  # inputs are channels × height × width


@dataclass(frozen=True, slots=True)
class Cell:
    """One model, one arm, one shard, one repeat."""

    id: str
    recipe: str
    model: str
    arm: Arm
    shard: Shard
    repeat: int


@dataclass(frozen=True)
class Plan:
    """Everything a study asks to be run."""

    models: tuple[ModelCard, ...]
    arms: tuple[Arm, ...]
    shards: tuple[Shard, ...]
    recipes: Mapping[tuple[str, str], str]  # (model, arm id) -> recipe

    def cells(self) -> Iterator[Cell]:
        """Every cell, shard by shard, so that an interrupted run has whole samples to show."""
        for shard in self.shards:
            for model in self.models:
                for arm in self.arms:
                    recipe = self.recipes[model.name, arm.id]
                    for repeat in range(arm.repeats):
                        # The names too: the same weights under two names are two models, with rows of their own.
                        name = digest([recipe, model.name, arm.id, shard.id, repeat])
                        yield Cell(name, recipe, model.name, arm, shard, repeat)

    @property
    def n_cells(self) -> int:
        return len(self.shards) * len(self.models) * sum(arm.repeats for arm in self.arms)


def make_plan(
    study: StudySpec,
    registries: Registries,
    *,
    models: Sequence[ModelCard],
    shards: Sequence[Shard],
    space: str,
) -> Plan:
    """Cross models, arms, shards and repeats; `space` names what inputs may be."""
    arms = expand_arms(study, registries)
    _refuse_incapable(study, models, arms, registries)
    _refuse_objectives(study, models, arms, registries)
    _refuse_goals(study, arms, registries)
    _refuse_targets(study, models)
    _refuse_unknown_arms(study, arms)
    recipes = {
        (model.name, arm.id): digest(
            {
                "runner": RUNNER_VERSION,
                "model": model.digest,
                "arm": arm.identity(),
                "objective": arm.objective and registries.objectives.get(arm.objective).version,
                "seed": study.seed,
                "criterion": study.model_dump(mode="json", include={"success"}),
                "space": space,
            }
        )
        for model in models
        for arm in arms
    }
    return Plan(tuple(models), tuple(arms), tuple(shards), recipes)


def _refuse_unknown_arms(study: StudySpec, arms: Sequence[Arm]) -> None:
    """What an assessment names must be among the arms, or the answer would come after all the work."""
    ids = [arm.id for arm in arms]
    for place, pattern in enumerate(study.assess.damage.arms or ()):
        if not any(fnmatchcase(arm, pattern) for arm in ids):
            loc = ("assess", "damage", "arms", place)
            raise study.where.error(loc, f"no arm is called {pattern!r}; {did_you_mean(pattern, ids)}")


def _refuse_objectives(
    study: StudySpec, models: Sequence[ModelCard], arms: Sequence[Arm], registries: Registries
) -> None:
    """An objective that cannot be climbed towards the goal, or from what a model answers."""
    for arm in arms:
        if arm.objective is None:
            continue
        traits = registries.objectives.get(arm.objective).traits
        if study.criterion == "target" and not traits.targeted:
            able = ", ".join(part.name for part in registries.objectives if part.traits.targeted)
            raise study.where.error(
                ("success",),
                f"{arm.id}: {arm.objective} leads away from a class, towards none; with a target use {able}",
            )
        aimed = study.criterion == "target" or registries.attacks.get(arm.family).traits.aims
        fewest = traits.classes[aimed]
        for model in models:
            found = ""
            if traits.logits and model.capability != "gradients":
                found = f"needs logits, but {model.name} gives {model.capability} only"
            elif model.n_classes < fewest:
                found = f"needs {fewest} classes, but {model.name} knows {model.n_classes}"
            if found:
                remedy = "use the objective ace or margin"
                raise study.where.error(place_of(arm, study, registries), f"{arm.id} {found}; {remedy}")


def _refuse_goals(study: StudySpec, arms: Sequence[Arm], registries: Registries) -> None:
    """An attack that cannot lead where the study's success lies."""
    for arm in arms:
        if arm.kind == "attack":
            known = registries.attacks.get(arm.family).traits.resolved(arm.params, arm.norm, arm.eps)
            found = ""
            if study.criterion == "target" and not known.towards:
                found = "cannot aim at a target; remove it"
            elif study.criterion != "target" and not known.away:
                found = "can only aim at a target; remove it, or say `success: {target: …}`"
            if found:
                raise study.where.error(place_of(arm, study, registries), f"{arm.id} {found}")


def _refuse_targets(study: StudySpec, models: Sequence[ModelCard]) -> None:
    """A target that a model does not know."""
    if not isinstance(study.success, TargetSpec):
        return
    wanted = study.success.target
    for model in models:
        if wanted == "least-likely" and not gives(model.capability, "scores"):
            raise study.where.error(("success",), f"least-likely needs scores, but {model.name} gives labels only")
        classes = wanted.values() if isinstance(wanted, dict) else [wanted] if isinstance(wanted, int) else []
        for target in classes:
            if target >= model.n_classes:
                raise study.where.error(
                    ("success", "target"), f"class {target} is not known to {model.name}: 0 to {model.n_classes - 1}"
                )


def _refuse_incapable(
    study: StudySpec, models: Sequence[ModelCard], arms: Sequence[Arm], registries: Registries
) -> None:
    for arm in arms:
        if arm.kind == "attack":
            traits = registries.attacks.get(arm.family).traits
            needs = traits.resolved(arm.params, arm.norm, arm.eps).needs
            for model in models:
                found = ""
                if not gives(model.capability, needs):
                    found = f"{arm.id} needs {needs} of a model, but {model.name} gives {model.capability} only"
                elif traits.images and not model.takes_images:
                    found = f"{arm.id} is for images (channels × height × width), which {model.name} does not take"
                if found:
                    raise study.where.error(place_of(arm, study, registries), found)
