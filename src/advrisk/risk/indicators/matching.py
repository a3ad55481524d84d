"""A scenario laid over a tensor: which arms each leaf means, and which share everything has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean, matches
from advrisk.risk.indicators.scenario import CLEAN, SUM_SLACK, Aggregate, Branch, Floats, Scenario, drawn_shares
from advrisk.risk.indicators.tensor import Flags, RiskTensor

Where = tuple[tuple[str, tuple[str, ...]], ...]

DRAWS = 4000  # of uncertain weights


class MissingArmsError(RiskError):
    """A scenario speaks of arms that were not run: `missing` holds (path in the tree, name) of each."""

    def __init__(self, missing: Sequence[tuple[str, str]], known: Sequence[str]) -> None:
        self.missing = tuple(missing)
        places = "; ".join(f"{path}: no arm fits {name!r}" for path, name in missing)
        super().__init__(f"{places} ({did_you_mean(missing[0][1], known)})")

    @property
    def names(self) -> tuple[str, ...]:
        """What no arm is called, each once."""
        return tuple(dict.fromkeys(name for _, name in self.missing))


@dataclass(frozen=True)
class Leaf:
    """Arms that are put together sample by sample, on the samples of some strata."""

    arms: tuple[int, ...]  # places in the tensor
    aggregate: Aggregate
    where: Where


@dataclass(frozen=True, eq=False)
class Node:
    """A branch of a scenario, its arms and shares found; `children` holds the clean rest, too."""

    name: str
    path: str
    leaf: int | None = None  # its place among the leaves
    children: "tuple[Node, ...]" = ()
    shares: Floats = field(default_factory=lambda: np.empty(0))  # of the children, on average
    drawn: Floats | None = None  # (draws, children), where they are uncertain

    def walk(self) -> "Iterator[Node]":
        """The node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, eq=False)
class Laid:
    """A scenario over a tensor."""

    scenario: Scenario
    root: Node
    leaves: tuple[Leaf, ...]
    members: tuple[Flags, ...]  # samples on which each leaf can happen


def laid(scenario: Scenario, tensor: RiskTensor, rng: np.random.Generator, *, draws: int = DRAWS) -> Laid:
    """Find arms and samples of every branch; MissingArmsError tells of all that are not there at once."""
    work = _Laying(tensor, rng, draws)
    root = work.level(scenario.branches, scenario.name, (), dirichlet=scenario.dirichlet)
    if work.missing:
        known = {*tensor.arms, *tensor.family, *tensor.cause} - {""}
        raise MissingArmsError(work.missing, sorted(known))
    leaves = tuple(work.places)
    return Laid(scenario, replace(root, name=scenario.name), leaves, tuple(work.masks[leaf.where] for leaf in leaves))


class _Laying:
    """What is found on the way down a scenario."""

    def __init__(self, tensor: RiskTensor, rng: np.random.Generator, draws: int) -> None:
        self.tensor, self.rng, self.draws = tensor, rng, draws
        self.places: dict[Leaf, int] = {}
        self.masks: dict[Where, Flags] = {}
        self.missing: list[tuple[str, str]] = []

    def level(self, branches: Sequence[Branch], path: str, where: Where, *, dirichlet: bool) -> Node:
        """The branches beside each other, and the clean rest."""
        uncertain = dirichlet or any(branch.weight.beta for branch in branches)
        means = np.array([branch.weight.mean for branch in branches])
        means = means / means.sum() if dirichlet else means
        drawn = None
        if uncertain:
            drawn, redrawn = drawn_shares(branches, self.draws, self.rng, dirichlet=dirichlet)
            means = drawn.mean(axis=0) if redrawn else means
        named = [place for place, branch in enumerate(branches) if branch.name != CLEAN]
        nodes = [self.branch(branches[place], where) for place in named]
        rest = max(0.0, 1.0 - float(means[named].sum()))
        if rest > SUM_SLACK or len(named) < len(branches):
            nodes.append(self.leaf(CLEAN, f"{path}.{CLEAN}", self.clean(path), "mean", where))
            means = np.append(means[named], rest)
            if drawn is not None:
                drawn = np.column_stack([drawn[:, named], np.maximum(0.0, 1.0 - drawn[:, named].sum(axis=1))])
        return Node("", path, None, tuple(nodes), means, drawn)

    def branch(self, branch: Branch, outer: Where) -> Node:
        where = (*outer, *sorted(branch.where.items()))
        self.samples(where, branch.path)
        if not branch.of:
            arms = self.arms(branch)
            return self.leaf(branch.name, branch.path, arms, self.aggregate(arms, branch), where)
        if branch.listed:
            found = [self.arms(child) for child in branch.of]
            together = tuple(sorted({arm for arms in found for arm in arms}))
            if self.aggregate(together, branch) == "max":
                return self.leaf(branch.name, branch.path, together, "max", where)
        node = self.level(branch.of, branch.path, where, dirichlet=branch.dirichlet)
        return replace(node, name=branch.name)

    def leaf(self, name: str, path: str, arms: tuple[int, ...], aggregate: Aggregate, where: Where) -> Node:
        leaf = Leaf(arms, aggregate, where)
        self.samples(where, path)
        return Node(name, path, self.places.setdefault(leaf, len(self.places)))

    def arms(self, branch: Branch) -> tuple[int, ...]:
        """Those that the branch names, or those that are called like it: by id, family or cause."""
        tensor = self.tensor
        if branch.name == CLEAN and branch.arms is None:
            return self.clean(branch.path)
        columns = (tensor.arms, tensor.family, tensor.cause)
        found: set[int] = set()
        for pattern in branch.arms or (branch.name,):
            fits = {
                place
                for column in columns
                for place, name in enumerate(column)
                if name and (name == pattern or matches(name, [pattern]))
            }
            if not fits and (branch.path, pattern) not in self.missing:
                self.missing.append((branch.path, pattern))
            found |= fits
        return tuple(sorted(found))

    def clean(self, path: str) -> tuple[int, ...]:
        found = tuple(place for place, kind in enumerate(self.tensor.kind) if kind == CLEAN)
        if not found and (f"{path}.{CLEAN}", CLEAN) not in self.missing:
            self.missing.append((f"{path}.{CLEAN}", CLEAN))
        return found[:1]

    def aggregate(self, arms: Sequence[int], branch: Branch) -> Aggregate:
        """Attackers choose, nature does not: attacks take the maximum, other arms the mean, unless the branch says."""
        if branch.aggregate is not None:
            return branch.aggregate
        kinds = {self.tensor.kind[arm] == "attack" for arm in arms}
        if len(kinds) > 1:
            attacks = [self.tensor.arms[arm] for arm in arms if self.tensor.kind[arm] == "attack"]
            raise RiskError(
                f"{branch.path}: holds attacks ({', '.join(attacks[:3])}) and arms that are none; attackers choose and "
                "nature does not, so make two branches of them, or say `aggregate: mean` or `aggregate: max`"
            )
        return "max" if kinds == {True} else "mean"

    def samples(self, where: Where, path: str) -> None:
        if where in self.masks:
            return
        mask = np.ones(len(self.tensor.samples), dtype=np.bool_)
        for name, values in where:
            try:
                mask &= self.tensor.in_strata({name: values})
            except RiskError as error:
                raise RiskError(f"{path}.where: {error}") from None
        if not (mask & (self.tensor.weight > 0)).any():
            raise RiskError(
                f"{path}.where: none of {counted(mask.size, 'sample')} has {where_text(where) or 'any weight'}"
            )
        self.masks[where] = mask


def arms_used(found: Laid) -> tuple[int, ...]:
    """Places of all arms that the scenario uses."""
    return tuple(sorted({arm for leaf in found.leaves for arm in leaf.arms}))


def where_text(where: Where) -> str:
    """`light = night`."""
    return ", ".join(f"{name} = {' or '.join(values)}" for name, values in where)
