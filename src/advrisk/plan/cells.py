"""The cells of a study: the units of work, each named by everything that decides its result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from advrisk.core.digest import digest
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import no_match
from advrisk.core.registries import Registries
from advrisk.core.traits import DETECTOR, Capability, Resolved, gives
from advrisk.plan.arms import Named, entry_loc, expand_arms
from advrisk.plan.card import ModelCard
from advrisk.plan.certified import refuse_uncertifiable
from advrisk.plan.detectors import ConfiguredDetector, names_of, refuse_detectors
from advrisk.plan.measures import refuse_measures
from advrisk.plan.recipe import recipe_of
from advrisk.plan.samples import Shard
from advrisk.plan.search import Search, expand_searches, refuse_unlike_repeats
from advrisk.study import AVERAGE, Arm, Loc, StudySpec, TargetSpec


@dataclass(frozen=True, slots=True)
class Cell:
    """One model, one arm, one shard, one repeat.

    `needs` are the cells that must finish first: for a transfer, the one that crafts its points. `is_needed`: transfers
    use the points of this cell. `is_example`: detectors learn from its points, and the ledger records no rows.
    `keeps_inputs` is false where only the rows matter, as in a search.
    """

    id: str
    recipe: str
    model: str
    arm: Arm
    shard: Shard
    repeat: int
    needs: tuple["Cell", ...] = ()
    is_needed: bool = False
    is_example: bool = False
    keeps_inputs: bool = True


@dataclass(frozen=True)
class Plan:
    """The work of a study: which arm against which model, on which shards.

    Cells on samples of other splits belong to plans derived from this one: see `plan.certification`. `tune` and
    `calibrate` are empty where no cell uses them.
    """

    assessed: tuple[tuple[str, Arm], ...]  # (model, arm): every arm of the study against every model to assess
    crafting: tuple[tuple[str, Arm], ...]  # further attacks on surrogates, for points to transfer
    shards: tuple[Shard, ...]
    recipes: Mapping[tuple[str, str], str]  # (model, arm id) -> recipe
    tune: tuple[Shard, ...] = ()
    calibrate: tuple[Shard, ...] = ()
    searches: tuple[Search, ...] = ()

    @property
    def attempts(self) -> tuple[tuple[str, Arm], ...]:
        """Every pair of model and arm, after the pair whose points it transfers; those that share one, together."""
        alone = [pair for pair in self.assessed if pair[1].crafted_by is None]
        transfers = [pair for pair in self.assessed if pair[1].crafted_by is not None]
        return (*self.crafting, *alone, *sorted(transfers, key=lambda pair: pair[1].id))

    @cached_property
    def watched(self) -> frozenset[str]:
        """The full names of the detectors that some arm evades."""
        return frozenset(str(arm.params[DETECTOR]) for _, arm in self.assessed if DETECTOR in arm.params)

    def cells(self) -> Iterator[Cell]:
        """Every cell, shard by shard, so that an interrupted run has whole samples to show."""
        attempts = self.attempts
        for shard in self.shards:
            for model, arm in attempts:
                for repeat in range(arm.repeats):
                    yield self._cell(model, arm, shard, repeat)

    def find(self, name: str, model: str, arm: str, sample: str) -> Cell | None:
        """The cell with this name and sample; None if the plan has none."""
        planned, shard = self._arms.get((model, arm)), self._shard_of.get(sample)
        if planned is None or shard is None:
            return None
        cells = (self._cell(model, planned, shard, repeat) for repeat in range(planned.repeats))
        return next((cell for cell in cells if cell.id == name), None)

    @cached_property
    def _arms(self) -> Mapping[tuple[str, str], Arm]:
        return {(model, arm.id): arm for model, arm in self.attempts}

    @cached_property
    def _shard_of(self) -> Mapping[str, Shard]:
        return {name: shard for shard in self.shards for name in shard.samples}

    def _cell(self, model: str, arm: Arm, shard: Shard, repeat: int) -> Cell:
        recipe = self.recipes[model, arm.id]
        # The names too: the same weights under two names are two models, with rows of their own.
        name = digest([recipe, model, arm.id, shard.id, repeat])
        needs: tuple[Cell, ...] = ()
        if arm.crafted_by and arm.surrogate:
            needs = (self._cell(arm.surrogate, arm.crafted_by, shard, repeat),)
        return Cell(name, recipe, model, arm, shard, repeat, needs, is_needed=(model, arm.id) in self._needed)

    @cached_property
    def _needed(self) -> frozenset[tuple[str | None, str]]:
        return frozenset((arm.surrogate, arm.crafted_by.id) for _, arm in self.assessed if arm.crafted_by)

    @property
    def all_shards(self) -> tuple[Shard, ...]:
        """The shards of every split with cells."""
        return (*self.shards, *self.tune, *self.calibrate)

    @property
    def n_cells(self) -> int:
        return len(self.shards) * sum(arm.repeats for _, arm in self.attempts)


def make_plan(
    outline: Plan,
    study: StudySpec,
    registries: Registries,
    *,
    models: Sequence[ModelCard],
    shards: Sequence[Shard],
    space: str,
    tune: Sequence[Shard] = (),
    calibrate: Sequence[Shard] = (),
) -> Plan:
    """Complete an outline with shards and recipes; `space` is the digest of the space."""
    cards = {model.name: model for model in models}
    recipes: dict[tuple[str, str], str] = {}
    for model, arm in outline.attempts:
        crafted = recipes[arm.surrogate, arm.crafted_by.id] if arm.crafted_by and arm.surrogate else None
        card = cards[model]
        recipes[model, arm.id] = recipe_of(
            study, registries, card.digest, arm, space, crafted=crafted, random=card.random
        )
    return replace(outline, shards=tuple(shards), recipes=recipes, tune=tuple(tune), calibrate=tuple(calibrate))


def example_cell(
    study: StudySpec, registries: Registries, model: ModelCard, arm: Arm, shard: Shard, *, space: str
) -> Cell:
    """A cell outside all plans that crafts examples for a detector."""
    recipe = recipe_of(study, registries, model.digest, arm, space, random=model.random)
    name = digest([recipe, model.name, arm.id, shard.id, 0])
    return Cell(name, recipe, model.name, arm, shard, 0, is_example=True)


def outline_plan(
    study: StudySpec,
    registries: Registries,
    *,
    models: Sequence[ModelCard],
    detectors: Sequence[ConfiguredDetector] = (),
) -> Plan:
    """The pairs of models and arms, without samples and recipes; refuses arms that these models cannot answer."""
    names, mistakes = names_of(detectors), Mistakes()
    arms = expand_arms(study, registries, names)
    searches = expand_searches(study, registries, models)
    cards = {model.name: model for model in models}
    checks: list[Callable[[], None]] = [
        lambda: _refuse_unknown_arms(study, arms),
        lambda: refuse_uncertifiable(study, arms),
        lambda: _refuse_average_of_one(study, [model for model in models if not model.surrogate]),
        lambda: _refuse_targets(study, models),
        lambda: refuse_unlike_repeats(study, searches, arms),
        lambda: refuse_detectors(study, registries, detectors, models),
        lambda: refuse_measures(study, registries, models),
    ]
    for check in checks:
        with mistakes.collect():
            check()
    mistakes.refuse()
    outline = Plan(_assessed(study, models, arms), _crafting(cards, arms), (), {}, searches=searches)
    attempts = (*outline.attempts, *((search.model, search.arm) for search in searches))
    attacks = {arm.id: arm for _, arm in attempts if arm.kind == "attack"}
    resolved = {name: _resolved(arm, registries) for name, arm in attacks.items()}
    for model, arm in attempts:
        with mistakes.collect():
            if arm.id in resolved:
                _refuse_incapable(study, cards[model], arm, resolved[arm.id].needs, registries, names)
            if arm.kind == "corruption":
                _refuse_inputs(study, cards[model], arm, registries)
            _refuse_objective(study, cards[model], arm, registries, names)
            _refuse_too_many_draws(study, cards[model], arm, registries, names)
    for name, arm in attacks.items():
        with mistakes.collect():
            _refuse_goal(study, arm, resolved[name], registries, names)
    mistakes.refuse()
    return outline


def _entry_loc(arm: Arm, study: StudySpec, registries: Registries, names: Named) -> Loc:
    """The location of the entry of `arms` or `search` with this arm."""
    loc = entry_loc(arm, study, registries, names)
    if len(loc) == 1:
        models = [ModelCard("any", "", "gradients", 0)]
        return next((one.loc for one in expand_searches(study, registries, models) if one.arm.id == arm.id), loc)
    return loc


def _assessed(study: StudySpec, models: Sequence[ModelCard], arms: Sequence[Arm]) -> tuple[tuple[str, Arm], ...]:
    names = [model.name for model in models if not model.surrogate]
    if not names:
        raise study.where.error(("models",), "all are surrogates, which are not assessed; add the model to assess")
    inside = {name for spec in study.defences.values() for name in spec.of}
    for model in models:
        if model.surrogate and model.name not in inside and not any(arm.surrogate == model.name for arm in arms):
            problem = "is a surrogate, but no arm transfers from it; add one"
            remedy = f"{{attack: transfer, from: {model.name}, arm: …}}"
            raise study.where.error(("models", model.name), f"{problem}: {remedy}")
    return tuple((name, arm) for name in names for arm in arms)


def _crafting(cards: Mapping[str, ModelCard], arms: Sequence[Arm]) -> tuple[tuple[str, Arm], ...]:
    """Attacks on surrogates that are no arms of the study against them."""
    own = {arm.id for arm in arms}
    pairs = {
        (arm.surrogate, arm.crafted_by.id): (arm.surrogate, arm.crafted_by)
        for arm in arms
        if arm.crafted_by and arm.surrogate
        if cards[arm.surrogate].surrogate or arm.crafted_by.id not in own
    }
    return tuple(pairs.values())


def _refuse_unknown_arms(study: StudySpec, arms: Sequence[Arm]) -> None:
    """Refuse arms in an assessment that the study does not have, before any work."""
    ids = [arm.shown for arm in arms]
    mistakes = Mistakes()
    for method, named in (("damage", study.assess.damage.arms), ("detection", study.assess.detection.arms)):
        for index, pattern in enumerate(named or ()):
            if complaint := no_match(pattern, ids):
                mistakes.add(study.where.error(("assess", method, "arms", index), complaint))
    mistakes.refuse()


def _refuse_average_of_one(study: StudySpec, assessed: Sequence[ModelCard]) -> None:
    """Refuse average evasion for one model: without a detector, damage is relative to other models."""
    if study.assess.damage.evasion == AVERAGE and len(assessed) == 1:
        raise study.where.error(
            ("assess", "damage", "evasion"),
            f"found one model, {assessed[0].name}, but damage under average evasion is relative to other models; add a "
            "model, or name a file with an evasion curve",
        )


def _refuse_objective(study: StudySpec, model: ModelCard, arm: Arm, registries: Registries, names: Named) -> None:
    """Refuse an objective that cannot reach the goal, or that the model's outputs do not allow."""
    if arm.objective is None or arm.crafted_by is not None:  # a transfer uses no objective
        return
    traits = registries.objectives.get(arm.objective).traits
    if study.criterion == "target" and not traits.targeted:
        able = ", ".join(part.name for part in registries.objectives if part.traits.targeted)
        raise study.where.error(
            ("success",),
            f"{arm.shown}: the objective {arm.objective} cannot aim at a target; use {able}",
        )
    aimed = study.criterion == "target" or registries.attacks.get(arm.family).traits.aims
    fewest = traits.classes[aimed]
    problem = ""
    if traits.logits and model.capability != "gradients":
        problem = f"needs logits, but {model.name} gives {model.capability} only"
    elif model.n_classes < fewest:
        problem = f"needs {fewest} classes, but {model.name} knows {model.n_classes}"
    if problem:
        remedy = "use the objective ace or margin"
        raise study.where.error(_entry_loc(arm, study, registries, names), f"{arm.shown} {problem}; {remedy}")


def _refuse_too_many_draws(study: StudySpec, model: ModelCard, arm: Arm, registries: Registries, names: Named) -> None:
    """Refuse an arm whose draws of one point exceed its query limit."""
    if model.random and arm.max_queries is not None and arm.max_queries < arm.draws:
        problem = f"{arm.shown}: a point takes {arm.draws} passes of {model.name}, which answers at random (`draws`)"
        remedy = f"but max_queries is {arm.max_queries}; allow more, or draw less often"
        raise study.where.error(_entry_loc(arm, study, registries, names), f"{problem}, {remedy}")


def _refuse_goal(study: StudySpec, arm: Arm, resolved: Resolved, registries: Registries, names: Named) -> None:
    """Refuse an attack that cannot reach the study's success criterion."""
    problem = ""
    if study.criterion == "target" and not resolved.towards:
        problem = "cannot aim at a target; remove it"
    elif study.criterion != "target" and not resolved.away:
        problem = "can only aim at a target; remove it, or write `success: {target: …}`"
    if arm.crafted_by and isinstance(study.success, TargetSpec) and study.success.target == "least-likely":
        problem = "aims at the surrogate's least likely class, which differs between models; name the target"
    if problem:
        raise study.where.error(_entry_loc(arm, study, registries, names), f"{arm.shown} {problem}")


def _resolved(arm: Arm, registries: Registries) -> Resolved:
    return registries.attacks.get(arm.family).traits.resolved(arm.params, arm.norm, arm.eps)


def _refuse_targets(study: StudySpec, models: Sequence[ModelCard]) -> None:
    """Refuse a target that a model lacks."""
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
                    ("success", "target"), f"found class {target}, but {model.name} has 0 to {model.n_classes - 1}"
                )


def _refuse_inputs(study: StudySpec, model: ModelCard, arm: Arm, registries: Registries) -> None:
    """Refuse a corruption for other inputs than the model's."""
    inputs = registries.corruptions.get(arm.family).traits.inputs
    if inputs == "any" or (inputs == "images") == model.takes_images:
        return
    able = [part.name for part in registries.corruptions if part.traits.inputs != inputs]
    needed = "images (channels × height × width)" if inputs == "images" else "tables (rows of features)"
    problem = f"{arm.shown} is for {needed}, which {model.name} does not take; use one of {', '.join(able)}"
    raise study.where.error(entry_loc(arm, study, registries), problem)


def _refuse_incapable(
    study: StudySpec, model: ModelCard, arm: Arm, needs: Capability, registries: Registries, names: Named
) -> None:
    """Refuse an attack that needs more of a model than it gives."""
    problem = ""
    if not gives(model.capability, needs):
        able = [part for part in registries.attacks if part.traits.resolve is None]
        able = [part for part in able if gives(model.capability, part.traits.needs)]
        problem = f"{arm.shown} needs {needs} of a model, but {model.name} gives {model.capability} only"
        problem += f"; use one of {', '.join(part.name for part in able)}" if able else ""
    elif registries.attacks.get(arm.family).traits.images and not model.takes_images:
        problem = f"{arm.shown} is for images (channels × height × width), which {model.name} does not take"
    if problem:
        raise study.where.error(_entry_loc(arm, study, registries, names), problem)
