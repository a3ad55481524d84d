"""Matching of a scenario with a tensor: the arms of each leaf, and the share of each branch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean, matches
from advrisk.risk.indicators.scenario import CLEAN, SUM_SLACK, Aggregate, Branch, Floats, Scenario, drawn_shares
from advrisk.risk.indicators.tensor import Flags, RiskTensor

Where = tuple[tuple[str, tuple[str, ...]], ...]

DRAWS = 4000  # draws of uncertain weights


class MissingArmsError(RiskError):
    """A scenario names arms that were not run; `missing` lists (path in the tree, name) of each."""

    def __init__(self, missing: Sequence[tuple[str, str]], names: Sequence[str]) -> None:
        self.missing = tuple(missing)
        listed = "; ".join(f"{path}: no arm fits {name!r}" for path, name in missing)
        super().__init__(f"{listed} ({did_you_mean(missing[0][1], names)})")

    @property
    def names(self) -> tuple[str, ...]:
        """The distinct names that no arm has."""
        return tuple(dict.fromkeys(name for _, name in self.missing))


@dataclass(frozen=True)
class Leaf:
    """Arms that are aggregated sample by sample, on the samples of some strata."""

    arms: tuple[int, ...]  # indices in the tensor
    aggregate: Aggregate
    where: Where


@dataclass(frozen=True, eq=False)
class Node:
    """A branch of a scenario with its arms and shares; `children` includes the clean remainder."""

    name: str
    path: str
    leaf: int | None = None  # index among the leaves
    children: "tuple[Node, ...]" = ()
    shares: Floats = field(default_factory=lambda: np.empty(0))  # mean shares of the children
    drawn: Floats | None = None  # (draws, children), if they are uncertain

    def walk(self) -> "Iterator[Node]":
        """The node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, eq=False)
class MatchedScenario:
    """A scenario with the arms and samples of a tensor."""

    scenario: Scenario
    root: Node
    leaves: tuple[Leaf, ...]
    members: tuple[Flags, ...]  # samples to which each leaf applies


def match_scenario(
    scenario: Scenario, tensor: RiskTensor, rng: np.random.Generator, *, draws: int = DRAWS
) -> MatchedScenario:
    """Find the arms and samples of every branch; a MissingArmsError lists all that are missing."""
    matcher = _Matcher(tensor, rng, draws)
    root = matcher.level(scenario.branches, scenario.name, (), dirichlet=scenario.dirichlet)
    if matcher.missing:
        names = {*tensor.arms, *tensor.family, *tensor.cause} - {""}
        raise MissingArmsError(matcher.missing, sorted(names))
    leaves = tuple(matcher.leaves)
    members = tuple(matcher.masks[leaf.where] for leaf in leaves)
    return MatchedScenario(scenario, replace(root, name=scenario.name), leaves, members)


class _Matcher:
    """Leaves, sample masks and missing arms, collected while walking down a scenario."""

    def __init__(self, tensor: RiskTensor, rng: np.random.Generator, draws: int) -> None:
        self.tensor, self.rng, self.draws = tensor, rng, draws
        self.leaves: dict[Leaf, int] = {}  # leaf -> index
        self.masks: dict[Where, Flags] = {}
        self.missing: list[tuple[str, str]] = []

    def level(self, branches: Sequence[Branch], path: str, where: Where, *, dirichlet: bool) -> Node:
        """Node of the branches of one level and the clean remainder."""
        uncertain = dirichlet or any(branch.weight.beta for branch in branches)
        means = np.array([branch.weight.mean for branch in branches])
        means = means / means.sum() if dirichlet else means
        drawn = None
        if uncertain:
            drawn, redrawn = drawn_shares(branches, self.draws, self.rng, dirichlet=dirichlet)
            means = drawn.mean(axis=0) if redrawn else means
        perturbed = [index for index, branch in enumerate(branches) if branch.name != CLEAN]
        nodes = [self.branch(branches[index], where) for index in perturbed]
        remainder = max(0.0, 1.0 - float(means[perturbed].sum()))
        if remainder > SUM_SLACK or len(perturbed) < len(branches):
            nodes.append(self.leaf(CLEAN, f"{path}.{CLEAN}", self.clean(path), "mean", where))
            means = np.append(means[perturbed], remainder)
            if drawn is not None:
                drawn = np.column_stack([drawn[:, perturbed], np.maximum(0.0, 1.0 - drawn[:, perturbed].sum(axis=1))])
        return Node("", path, None, tuple(nodes), means, drawn)

    def branch(self, branch: Branch, outer: Where) -> Node:
        where = (*outer, *sorted(branch.where.items()))
        self.samples(where, branch.path)
        if not branch.of:
            arms = self.arms(branch)
            return self.leaf(branch.name, branch.path, arms, self.aggregate(arms, branch), where)
        if branch.listed:
            arms = tuple(sorted({arm for child in branch.of for arm in self.arms(child)}))
            if self.aggregate(arms, branch) == "max":
                return self.leaf(branch.name, branch.path, arms, "max", where)
        node = self.level(branch.of, branch.path, where, dirichlet=branch.dirichlet)
        return replace(node, name=branch.name)

    def leaf(self, name: str, path: str, arms: tuple[int, ...], aggregate: Aggregate, where: Where) -> Node:
        leaf = Leaf(arms, aggregate, where)
        self.samples(where, path)
        return Node(name, path, self.leaves.setdefault(leaf, len(self.leaves)))

    def arms(self, branch: Branch) -> tuple[int, ...]:
        """Indices of the arms whose id, family or cause matches the branch's patterns, or its name."""
        tensor = self.tensor
        if branch.name == CLEAN and branch.arms is None:
            return self.clean(branch.path)
        columns = (tensor.arms, tensor.family, tensor.cause)
        arms: set[int] = set()
        for pattern in branch.arms or (branch.name,):
            fits = {
                arm
                for column in columns
                for arm, name in enumerate(column)
                if name and (name == pattern or matches(name, [pattern]))
            }
            if not fits and (branch.path, pattern) not in self.missing:
                self.missing.append((branch.path, pattern))
            arms |= fits
        return tuple(sorted(arms))

    def clean(self, path: str) -> tuple[int, ...]:
        arms = tuple(arm for arm, kind in enumerate(self.tensor.kind) if kind == CLEAN)
        if not arms and (f"{path}.{CLEAN}", CLEAN) not in self.missing:
            self.missing.append((f"{path}.{CLEAN}", CLEAN))
        return arms[:1]

    def aggregate(self, arms: Sequence[int], branch: Branch) -> Aggregate:
        """The branch's aggregate; by default `max` for attacks, as attackers choose, and `mean` for other arms."""
        if branch.aggregate is not None:
            return branch.aggregate
        kinds = {self.tensor.kind[arm] == "attack" for arm in arms}
        if len(kinds) > 1:
            attacks = [self.tensor.arms[arm] for arm in arms if self.tensor.kind[arm] == "attack"]
            raise RiskError(
                f"{branch.path}: found attacks ({', '.join(attacks[:3])}) and other arms in one branch; attackers "
                "choose and nature does not, so make two branches, or set `aggregate: mean` or `aggregate: max`"
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


def arms_used(matched: MatchedScenario) -> tuple[int, ...]:
    """Indices of all arms that the scenario uses."""
    return tuple(sorted({arm for leaf in matched.leaves for arm in leaf.arms}))


def where_text(where: Where) -> str:
    """`light = night`."""
    return ", ".join(f"{name} = {' or '.join(values)}" for name, values in where)
