"""Scenarios: a deployment as a tree of likelihoods over arms and strata, read from plain mappings and checked.

The remainder of each level is clean. Errors name their path in the tree. Nothing here knows a tensor.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import parse_number, percent_text
from advrisk.core.seeds import generator

Floats = NDArray[np.float64]
Aggregate = Literal["mean", "max"]

CLEAN = "clean"
SUM_SLACK = 1e-9  # rounding tolerance of sums of weights
MOST_DEEP = 20
MOST_REDRAWN = 0.05  # share of draws of uncertain weights whose sum may exceed 1
_TRIES = 4000  # draws that check whether uncertain weights are compatible
_OF_SCENARIO = ("strata", "dirichlet")
_OF_BRANCH = ("weight", "of", "arms", "where", "aggregate", "dirichlet")


class NoBranchError(StudyError):
    """A change of weight names a branch that the scenario does not have."""


@dataclass(frozen=True)
class Weight:
    """Share of a branch in its parent: a number, or uncertain with a Beta(a, b) distribution.

    Under a parent with `dirichlet` it is a concentration, equivalent to that many observations of the branch.
    """

    mean: float
    beta: tuple[float, float] | None = None


@dataclass(frozen=True)
class Branch:
    """A perturbation of inputs in a deployment: arms (a leaf), or other branches (`of`)."""

    name: str
    path: str
    weight: Weight
    of: "tuple[Branch, ...]" = ()
    listed: bool = False  # whether `of` is a list of names: equal shares for nature, the worst of attacks
    arms: tuple[str, ...] | None = None  # names or patterns; None: those that match the branch's name
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aggregate: Aggregate | None = None
    dirichlet: bool = False


@dataclass(frozen=True)
class Scenario:
    """A deployment: branches with their shares, and shares of strata that differ from the samples'."""

    name: str
    branches: tuple[Branch, ...]
    strata: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    dirichlet: bool = False
    source: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)  # the mapping in the study

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any]) -> "Scenario":
        """Read a scenario from a study.

        Each branch is a number (its weight) or `{weight, of, arms, where, aggregate, dirichlet}`. The other keys are
        `strata` and `dirichlet`. A StudyError names the path of a mistake.
        """
        if not isinstance(mapping, Mapping):
            raise StudyError(f"{name}: a scenario is a mapping of branches to weights, found {mapping!r}")
        own = {str(key): value for key, value in mapping.items() if key in _OF_SCENARIO}
        written = {key: value for key, value in mapping.items() if key not in _OF_SCENARIO}
        dirichlet = _flag(own.get("dirichlet", False), f"{name}.dirichlet")
        if not written:
            raise StudyError(f"{name}: names no branch; name at least one, such as `rain: 0.3`, or `clean: 1`")
        branches = _branches(written, name, dirichlet=dirichlet, inherited=None, depth=1)
        scenario = cls(name, branches, _strata(own.get("strata", {}), f"{name}.strata"), dirichlet, dict(mapping))
        _refuse_double_paths(scenario)
        return scenario

    def renamed(self, name: str) -> "Scenario":
        """The same scenario under another name."""
        return replace(self, name=name)

    def walk(self) -> Iterator[Branch]:
        """All branches, parents before children."""
        waiting = list(reversed(self.branches))
        while waiting:
            branch = waiting.pop()
            yield branch
            waiting += reversed(branch.of)

    @property
    def uncertain(self) -> bool:
        """Whether some weight has a distribution."""
        return self.dirichlet or any(branch.dirichlet or branch.weight.beta for branch in self.walk())


def what_if(scenario: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """Change weights of a scenario by path, as in `{"wet": 0.5, "wet.rain": 0.9}`, and check the result."""
    changed = _copied(scenario.source)
    for path, weight in changes.items():
        _change(changed, path, weight, scenario.name)
    return Scenario.from_mapping(scenario.name, changed)


def drawn_shares(
    branches: Sequence[Branch], n: int, rng: np.random.Generator, *, dirichlet: bool
) -> tuple[Floats, int]:
    """Draw shares of the branches of one level, (n, branches), and count the redraws of sums above 1."""
    if dirichlet:
        return rng.dirichlet([branch.weight.mean for branch in branches], size=n), 0
    shares = np.empty((n, len(branches)))
    waiting, redrawn = np.arange(n), 0
    while waiting.size:
        for number, branch in enumerate(branches):
            beta = branch.weight.beta
            shares[waiting, number] = rng.beta(*beta, size=waiting.size) if beta else branch.weight.mean
        waiting = waiting[shares[waiting].sum(axis=1) > 1 + SUM_SLACK]
        redrawn += waiting.size
    return shares, redrawn


# Reading


def _branches(
    written: Mapping[Any, Any], path: str, *, dirichlet: bool, inherited: Aggregate | None, depth: int
) -> tuple[Branch, ...]:
    if depth > MOST_DEEP:
        raise StudyError(f"{path}: branches are nested more than {MOST_DEEP} deep")
    branches = tuple(
        _branch(_name(name, path), entry, f"{path}.{name}", concentration=dirichlet, inherited=inherited, depth=depth)
        for name, entry in written.items()
    )
    _check_level(branches, path, dirichlet=dirichlet)
    return branches


def _branch(
    name: str, entry: Any, path: str, *, concentration: bool, inherited: Aggregate | None, depth: int
) -> Branch:
    fields = entry if isinstance(entry, Mapping) and "beta" not in entry else {"weight": entry}
    for key in fields:
        if key not in _OF_BRANCH:
            raise StudyError(f"{path}: a branch has no key {key!r}; {did_you_mean(key, _OF_BRANCH)}")
    if "weight" not in fields:
        raise StudyError(f"{path}: needs a weight, its share of what is above it")
    if name == CLEAN and len(fields) > 1:
        raise StudyError(
            f"{path}: clean has a weight and nothing else; call the branch otherwise and give it `arms: [clean]`"
        )
    weight = _weight(fields["weight"], path, concentration=concentration)
    dirichlet = _flag(fields.get("dirichlet", False), f"{path}.dirichlet")
    aggregate = _aggregate(fields.get("aggregate"), path) or inherited
    where = _where(fields.get("where", {}), f"{path}.where")
    common: dict[str, Any] = {"name": name, "path": path, "weight": weight, "where": where, "aggregate": aggregate}
    if "of" not in fields:
        if dirichlet:
            raise StudyError(f"{path}.dirichlet: shares are drawn among the branches under `of`, and there are none")
        return Branch(**common, arms=_arms(fields.get("arms"), f"{path}.arms"))
    if "arms" in fields:
        raise StudyError(f"{path}: has both `of` and `arms`; a branch is made of other branches, or of arms")
    children = _children(fields, path, aggregate, dirichlet=dirichlet, depth=depth)
    return Branch(**common, of=children, listed=isinstance(fields["of"], list | tuple), dirichlet=dirichlet)


def _children(
    fields: Mapping[str, Any], path: str, aggregate: Aggregate | None, *, dirichlet: bool, depth: int
) -> tuple[Branch, ...]:
    of = fields["of"]
    if not of or not isinstance(of, Mapping | list | tuple):
        raise StudyError(f"{path}.of: names of branches are needed, with weights or as a list, found {of!r}")
    if isinstance(of, Mapping):
        if aggregate == "max":
            raise StudyError(
                f"{path}: `aggregate: max` and weights under `of` contradict each other; give `of` as a list of names, "
                "or leave `aggregate` out"
            )
        return _branches(of, f"{path}.of", dirichlet=dirichlet, inherited=aggregate, depth=depth + 1)
    if dirichlet:
        raise StudyError(f"{path}: `dirichlet` needs weights under `of`, as counts; a list has none")
    names = [_name(name, f"{path}.of") for name in of]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise StudyError(f"{path}.of: {twice[0]!r} is listed {len(twice)} times")
    share = Weight(1 / len(names))
    inherited: Aggregate | None = None if aggregate == "max" else aggregate
    return tuple(Branch(name, f"{path}.of.{name}", share, aggregate=inherited) for name in names)


def _check_level(branches: Sequence[Branch], path: str, *, dirichlet: bool) -> None:
    if dirichlet:
        return
    fixed = math.fsum(branch.weight.mean for branch in branches if branch.weight.beta is None)
    if fixed > 1 + SUM_SLACK:
        written = " + ".join(f"{branch.weight.mean:g}" for branch in branches if branch.weight.beta is None)
        raise StudyError(f"{path}: the weights sum to {fixed:.10g}, more than 1: {written}")
    if any(branch.weight.beta for branch in branches):
        _check_draws(branches, path, fixed)


def _check_draws(branches: Sequence[Branch], path: str, fixed: float) -> None:
    """Refuse uncertain weights whose sum often exceeds 1."""
    mean = math.fsum(branch.weight.mean for branch in branches)
    rng = generator("scenario weights", path)
    total = fixed + sum(rng.beta(*branch.weight.beta, size=_TRIES) for branch in branches if branch.weight.beta)
    share = float(np.mean(total > 1 + SUM_SLACK))
    if share > MOST_REDRAWN:
        raise StudyError(
            f"{path}: the weights sum to {mean:.4g} on average, and to more than 1 in {percent_text(share)} of "
            f"the draws; at most {percent_text(MOST_REDRAWN)} may: make them smaller, or use `dirichlet`, whose "
            "shares always sum to 1"
        )


def _weight(value: Any, path: str, *, concentration: bool) -> Weight:
    if isinstance(value, Mapping):
        if concentration:
            raise StudyError(f"{path}: under `dirichlet` a weight is a count, found {dict(value)!r}")
        return _beta(value, path)
    number = _number(value, path)
    if concentration:
        if number <= 0:
            raise StudyError(f"{path}: under `dirichlet` a weight is a count of more than 0, found {value}")
    elif not 0 <= number <= 1 + SUM_SLACK:
        raise StudyError(f"{path}: a weight is a share from 0 to 1, found {value}")
    return Weight(number)


def _beta(value: Mapping[Any, Any], path: str) -> Weight:
    pair = value.get("beta")
    if set(value) != {"beta"} or not isinstance(pair, list | tuple) or len(pair) != 2:
        raise StudyError(f"{path}: a weight is a number or `beta: [a, b]`, found {dict(value)!r}")
    a, b = (_number(one, f"{path}.beta") for one in pair)
    if a <= 0 or b <= 0:
        raise StudyError(f"{path}.beta: both numbers must be more than 0, found [{a:g}, {b:g}]")
    return Weight(a / (a + b), (a, b))


def _number(value: Any, path: str) -> float:
    try:
        return parse_number(value)
    except ValueError as error:
        raise StudyError(f"{path}: {error}") from None


def _flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise StudyError(f"{path}: true or false is needed, found {value!r}")
    return value


def _aggregate(value: Any, path: str) -> Aggregate | None:
    if value is None:
        return None
    if value == "mean":
        return "mean"
    if value == "max":
        return "max"
    raise StudyError(f"{path}.aggregate: found {value!r}; {did_you_mean(value, ('max', 'mean'))}")


def _arms(value: Any, path: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else value
    if not names or not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise StudyError(f"{path}: names of arms or patterns with * are needed, found {value!r}")
    return tuple(names)


def _where(value: Any, path: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise StudyError(f"{path}: a mapping of strata to values is needed, such as `light: night`, found {value!r}")
    where = {}
    for name, entry in value.items():
        values = entry if isinstance(entry, list | tuple) else (entry,)
        if not values or any(isinstance(one, Mapping) or one is None for one in values):
            raise StudyError(f"{path}.{name}: a value or a list of values is needed, found {entry!r}")
        where[str(name)] = tuple(map(str, values))
    return where


def _strata(value: Any, path: str) -> dict[str, dict[str, float]]:
    if not isinstance(value, Mapping):
        raise StudyError(f"{path}: a mapping of strata to shares is needed, found {value!r}")
    strata: dict[str, dict[str, float]] = {}
    for name, shares in value.items():
        if not isinstance(shares, Mapping) or not shares:
            raise StudyError(f"{path}.{name}: shares are needed, such as `{{day: 0.7, night: 0.3}}`, found {shares!r}")
        numbers = {str(one): _number(share, f"{path}.{name}.{one}") for one, share in shares.items()}
        for one, share in numbers.items():
            if share < 0:
                raise StudyError(f"{path}.{name}.{one}: a share cannot be negative, found {share:g}")
        total = math.fsum(numbers.values())
        if abs(total - 1) > SUM_SLACK:
            raise StudyError(f"{path}.{name}: the shares sum to {total:.10g}; they must sum to 1")
        strata[str(name)] = numbers
    return strata


def _refuse_double_paths(scenario: Scenario) -> None:
    """Refuse equal paths, which names with dots can cause, as results identify branches by path."""
    paths = [branch.path.replace(".of.", ".") for branch in scenario.walk()]
    for path in paths:
        if paths.count(path) > 1:
            raise StudyError(f"{path}: two branches have this path, as a name contains a dot; rename one of them")


def _name(name: Any, path: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise StudyError(f"{path}: branches have names, found {name!r}")
    return name


# Changing


def _change(written: dict[str, Any], path: str, weight: Any, name: str) -> None:
    """Set the weight of the branch at a path; names may contain dots, so the longest match is tried first."""
    holder = _holder(written, path, top=True)
    if holder is None:
        paths = [
            branch.path.removeprefix(f"{name}.").replace(".of.", ".")
            for branch in Scenario.from_mapping(name, written).walk()
        ]
        if path in paths:  # of a list, whose branches share equally
            raise StudyError(f"{name}.{path}: has no weight of its own to change, as `of` is a list; give `of` weights")
        raise NoBranchError(f"{name} has no branch {path!r} whose weight could be changed; {did_you_mean(path, paths)}")
    level, key = holder
    entry = level[key]
    if isinstance(entry, dict) and "beta" not in entry:
        entry["weight"] = weight
    else:
        level[key] = weight


def _holder(level: Any, path: str, *, top: bool = False) -> tuple[dict[str, Any], str] | None:
    """The mapping that contains the branch at a path, and its key."""
    if not isinstance(level, dict):
        return None
    for key in sorted(level, key=lambda one: -len(str(one))):
        if top and key in _OF_SCENARIO:
            continue
        if path == key:
            return level, key
        if path.startswith(f"{key}.") and isinstance(level[key], dict):
            remainder = path.removeprefix(f"{key}.")
            for inside in (remainder, remainder.removeprefix("of.")):
                if holder := _holder(level[key].get("of"), inside):
                    return holder
    return None


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list | tuple) else value
