"""Searches from the entries of `search`: one for each model, attack, norm and eps, with its box of parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advrisk.core.digest import digest
from advrisk.core.errors import AdvriskError
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import did_you_mean, search_label
from advrisk.core.registries import Registries
from advrisk.core.registry import Part
from advrisk.core.traits import AttackTraits, Box
from advrisk.plan.arms import expand_entry, readable_id, with_params
from advrisk.plan.card import ModelCard
from advrisk.plan.recipe import recipe_of
from advrisk.study import THEORY, Arm, ArmEntry, Loc, RangeSpec, SearchEntry, Source, StudySpec, validated

# Raise it when the same search would try other settings: stored trajectories then start again.
SEARCH_VERSION = 1

Setting = dict[str, float]  # parameter -> value; whole numbers are whole


@dataclass(frozen=True)
class SearchAxis:
    """One parameter of a box, with positions from 0 to 1 for its values."""

    name: str
    low: float
    high: float
    log: bool = False
    whole: int = 0  # the step of a whole number; 0 for other parameters
    start: tuple[float, ...] = ()

    def value(self, position: float) -> float:
        """The value at a position, with the digits that ids of arms show."""
        if self.log:
            value = self.low * (self.high / self.low) ** position
        else:
            value = self.low + position * (self.high - self.low)
        return self._whole(value) if self.whole else self._short(value)

    def position(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    @property
    def n_values(self) -> int:
        """The number of values of a whole number."""
        return math.floor(self.high / self.whole) - math.ceil(self.low / self.whole) + 1

    def _whole(self, value: float) -> int:
        steps = round(value / self.whole)
        return self.whole * min(max(steps, math.ceil(self.low / self.whole)), math.floor(self.high / self.whole))

    def _short(self, value: float) -> float:
        """The value with six digits; if rounding leaves the range, the last digit moves back by one."""
        short = float(f"{value:.6g}")
        if self.low <= short <= self.high:
            return short
        last = 10.0 ** (math.floor(math.log10(abs(value))) - 5) if value else 0.0
        return float(f"{short + last if short < self.low else short - last:.6g}")


@dataclass(frozen=True)
class Search:
    """A search for the most harmful settings of one attack against one model."""

    model: str
    arm: Arm  # the attack somewhere in the box
    name: str  # of the attack, without the varied parameters
    axes: tuple[SearchAxis, ...]
    method: str
    rounds: int
    batch: int
    beta: float | str
    freeze: int
    race: bool
    loc: Loc  # in the study
    usual: Setting = field(
        default_factory=dict
    )  # the attack's defaults, clipped to the box; without parameters that have none

    @property
    def label(self) -> str:
        return search_label(self.name, [axis.name for axis in self.axes], self.model)

    def setting(self, position: Sequence[float]) -> Setting:
        """The setting at a position in the unit cube."""
        return {axis.name: axis.value(at) for axis, at in zip(self.axes, position, strict=True)}

    def position(self, setting: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(axis.position(setting[axis.name]) for axis in self.axes)

    def from_usual(self, setting: Mapping[str, float]) -> float:
        """The distance of a setting from the attack's defaults, in the unit cube."""
        axes = [axis for axis in self.axes if axis.name in self.usual]
        return math.dist(*([axis.position(one[axis.name]) for axis in axes] for one in (setting, self.usual)))

    def arm_at(self, setting: Mapping[str, float], registries: Registries) -> Arm:
        """The attack with these settings."""
        part = registries.attacks.get(self.arm.family)
        return with_params(self.arm, part, part.bind({**self.arm.params, **setting}))

    def identity(self, recipe: str, samples: Any) -> str:
        """A digest of everything that decides which settings are tried, but not their number; `recipe` is `arm`'s."""
        decisive: dict[str, Any] = {
            "version": SEARCH_VERSION,
            "recipe": recipe,
            "axes": [vars(axis) for axis in self.axes],
            "method": self.method,
            "batch": self.batch,
            "repeats": self.arm.repeats,
            "samples": samples,
        }
        if self.method == "grid":  # its spacing depends on the number of points
            decisive["rounds"] = self.rounds
        if self.method == "gp-ucb":  # other methods do not learn from results
            decisive |= {"beta": self.beta, "race": self.race and self.freeze}
        return digest(decisive)


def expand_searches(study: StudySpec, registries: Registries, models: Sequence[ModelCard]) -> tuple[Search, ...]:
    """Every search of a study; refuses entries that cannot be searched, with their location in the file."""
    searches: dict[tuple[str, str], Search] = {}
    if study.search and not study.data.tune:
        problem = "needs samples of a tuning split; add, for example, `tune: 200` to `data`"
        raise study.where.error(("search",), problem)
    assessed, mistakes = [model.name for model in models if not model.surrogate], Mistakes()
    for index, entry in enumerate(study.search):
        loc: Loc = ("search", index)
        with mistakes.collect(), study.where.at(loc):
            for one in [one for model in assessed for one in _searches(entry, model, registries, loc)]:
                if searches.setdefault((one.model, one.label), one) is not one:
                    raise AdvriskError(f"found {one.label} twice; remove one, or give it other settings")
    mistakes.refuse()
    return tuple(searches.values())


def refuse_unlike_repeats(study: StudySpec, searches: Sequence[Search], arms: Sequence[Arm]) -> None:
    """Refuse an arm of the study that a search may propose with another number of repeats."""
    for search in searches:
        for arm in arms:
            same = (arm.family, arm.norm, arm.eps) == (search.arm.family, search.arm.norm, search.arm.eps)
            if same and arm.repeats != search.arm.repeats:
                problem = (
                    f"{search.name} has {search.arm.repeats} repeats here, and {arm.id} of `arms` has {arm.repeats}"
                )
                raise study.where.error(
                    search.loc, f"{problem}; the search may propose that arm: give both the same number of repeats"
                )


def search_recipe(study: StudySpec, registries: Registries, search: Search, model_digest: str, space: str) -> str:
    """The recipe of the attack against the model, at the corner of the box."""
    return recipe_of(study, registries, model_digest, search.arm, space)


def _searches(entry: SearchEntry, model: str, registries: Registries, loc: Loc) -> list[Search]:
    searches = []
    for name in entry.attack:
        part = registries.attacks.get(name)
        _refuse_unsearchable(entry, part)
        for arm in _arms(entry, part, registries):
            axes = _axes(entry, part, arm)
            fixed = {key: value for key, value in arm.params.items() if key not in {axis.name for axis in axes}}
            words = [arm.norm, f"{arm.eps:.6g}", arm.objective]
            search = Search(
                model=model,
                arm=with_params(arm, part, part.bind({**fixed, **{axis.name: axis.value(0.0) for axis in axes}})),
                name=readable_id(part, words, fixed, keep=arm.keep, max_queries=arm.max_queries),
                axes=axes,
                method=entry.method,
                rounds=entry.rounds,
                batch=entry.batch,
                beta=entry.beta if entry.beta == THEORY else float(entry.beta),
                freeze=entry.freeze,
                race=entry.method != "gp-ucb" if entry.race is None else entry.race,
                loc=loc,
                usual=_usual(part, axes, arm),
            )
            _refuse_coarse(search)
            searches.append(search)
    return searches


def _refuse_unsearchable(entry: SearchEntry, part: Part[AttackTraits]) -> None:
    if part.name == "transfer" or part.traits.watches or part.traits.accounting == "batch":
        raise AdvriskError(
            f"{part.name} cannot be searched: its settings are those of another attack, model or library"
        )
    if not part.traits.norms:
        raise AdvriskError(f"{part.name} has no norm and no eps, so there is no size within which to search; remove it")
    if entry.eps is None:
        raise AdvriskError(f"a search for {part.name} needs eps, the size within which attacks are compared")
    if not part.traits.box and entry.over is None:
        numbers = [name for name, parameter in part.parameters.items() if parameter.number]
        hint = f"name some of its parameters: over: {{{numbers[0]}: […, …]}}" if numbers else "it has none to vary"
        raise AdvriskError(f"{part.name} declares nothing to search over; {hint}")


def _arms(entry: SearchEntry, part: Part[AttackTraits], registries: Registries) -> list[Arm]:
    """The attacks of an entry; varied parameters without a default are at the lower end of their range."""
    required = {
        name: spec.low
        for name, spec in (entry.over or {}).items()
        if spec is not None and name in part.parameters and part.parameters[name].required
    }
    keys = entry.arm_keys() | {"attack": [part.name]} | required
    return list(expand_entry(validated(ArmEntry, keys, Source()), registries))


def _axes(entry: SearchEntry, part: Part[AttackTraits], arm: Arm) -> tuple[SearchAxis, ...]:
    named: Mapping[str, RangeSpec | None] = entry.over if entry.over is not None else dict.fromkeys(part.traits.box)
    axes = []
    for name, limits in named.items():
        if name not in part.parameters:
            raise AdvriskError(f"over: {part.name} has no parameter {name!r}; {did_you_mean(name, part.parameters)}")
        if name in entry.params:
            if entry.over is None:
                continue  # fixed: the search varies the other parameters of the box
            raise AdvriskError(f"found `{name}` both fixed and in `over`; remove one")
        if part.parameters[name].number is None:
            listed = f"list its values instead, as in {name}: […], for one search each"
            raise AdvriskError(f"over: {part.name}.{name} is no number, so it has no range; {listed}")
        axes.append(_axis(part, name, limits, arm))
    if not axes:
        raise AdvriskError(f"all parameters that {part.name} declares for a search are fixed here; remove one of them")
    return tuple(axes)


def _axis(part: Part[AttackTraits], name: str, limits: RangeSpec | None, arm: Arm) -> SearchAxis:
    declared = part.traits.box.get(name)
    parameter = part.parameters[name]
    whole = parameter.multiple_of if parameter.number is int else 0
    low, high, log = _range(part, name, limits, declared, arm)
    for end in (low, high):
        if whole and end != int(end):
            raise AdvriskError(f"over: {part.name}.{name} takes whole numbers, found {end:g}")
        part.bind({**arm.params, name: int(end) if whole else end})
    start = tuple(value for value in declared.start if low <= value <= high) if declared else ()
    axis = SearchAxis(name, low, high, log, whole, start)
    if whole and axis.n_values < 2:
        raise AdvriskError(f"over: {part.name}.{name} has but one value between {low:g} and {high:g}; fix it instead")
    return axis


def _usual(part: Part[AttackTraits], axes: Sequence[SearchAxis], arm: Arm) -> Setting:
    """The attack's default of each varied parameter, clipped to the box; parameters without one are left out."""
    usual: Setting = {}
    for axis in axes:
        default, declared = part.parameters[axis.name].default, part.traits.box.get(axis.name)
        if default is None and declared is not None and declared.usual is not None:
            default = declared.usual(arm.params, arm.eps or 1.0)
        if isinstance(default, int | float):
            usual[axis.name] = min(max(default, axis.low), axis.high)
    return usual


def _range(
    part: Part[AttackTraits], name: str, limits: RangeSpec | None, declared: Box | None, arm: Arm
) -> tuple[float, float, bool]:
    if limits is None:
        if declared is None:
            hint = f"set one, as in {{{name}: [0.1, 1]}}"
            raise AdvriskError(f"over: {part.name} declares no range of {name}; {hint}")
        unit = arm.eps or 1.0 if declared.of_eps else 1.0
        return declared.low * unit, declared.high * unit, declared.log
    log = declared.log if declared else limits.high >= 10 * limits.low
    log = limits.log if limits.log is not None else log and limits.low > 0
    return limits.low, limits.high, log


def _refuse_coarse(search: Search) -> None:
    """Refuse a grid with fewer than two values of each parameter."""
    needed = 2 ** len(search.axes)
    n_points = search.rounds * search.batch
    if search.method == "grid" and n_points < needed:
        raise AdvriskError(
            f"a grid over {len(search.axes)} parameters takes at least {needed} points; rounds × batch is {n_points}"
        )
