"""The tree of key risk indicators: the risk of every branch of a scenario, and its contribution to the total."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.seeds import generator
from advrisk.risk.indicators.estimates import Combination, combination, estimate, value_of, weights_part
from advrisk.risk.indicators.evaluation import Evaluated, LeafValues, evaluate, leaf_values
from advrisk.risk.indicators.matching import MatchedScenario, Node, match_scenario, where_text
from advrisk.risk.indicators.scenario import Scenario
from advrisk.risk.indicators.tensor import Flags, Floats, RiskTensor


@dataclass(frozen=True)
class Indicator:
    """A branch of a scenario: the risk given the branch, and its contribution to the total."""

    name: str
    path: str  # names from below the root, joined by dots; "" for the root
    weight: float  # its mean share of the whole scenario
    value: Estimate  # the risk, given this branch
    contribution: Estimate  # weight x value; those of the children sum to that of their parent
    weights_part: float  # share of the variance of the contribution due to uncertain weights
    aggregate: str  # how a leaf aggregates its arms: mean or max; `shares` for a branch of branches
    arms: tuple[str, ...]
    n: int  # samples
    children: "tuple[Indicator, ...]" = ()

    def walk(self) -> "Iterator[Indicator]":
        """The indicator and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def at(self, path: str) -> "Indicator":
        """The indicator at a path, such as `wet.rain`."""
        from advrisk.core.names import did_you_mean

        by_path = {one.path: one for one in self.walk()}
        if path not in by_path:
            raise RiskError(f"no branch {path!r}; {did_you_mean(path, by_path)}")
        return by_path[path]

    def leaves(self) -> "tuple[Indicator, ...]":
        """Indicators of arms, the largest contribution first."""
        leaves = [one for one in self.walk() if not one.children]
        return tuple(sorted(leaves, key=lambda one: (-one.contribution.value, one.path)))


@dataclass(frozen=True, eq=False)
class ScenarioRisk:
    """Risk of one tensor and loss under a scenario, computed on demand."""

    tensor: RiskTensor
    matched: MatchedScenario
    loss: str
    level: float
    seed: int  # of the draws for intervals
    of_leaf: LeafValues
    used: Flags  # samples

    @cached_property
    def evaluated(self) -> Evaluated:
        evaluated = evaluate(self.tensor, self.matched, self.loss, self.of_leaf, used=self.used)
        for node in self.matched.root.walk():
            if node.leaf is not None and evaluated.n[node.leaf] == 0:
                where = where_text(self.matched.leaves[node.leaf].where) or "any weight"
                raise RiskError(f"{node.path}: of the samples with a verdict from every arm, none has {where}")
        return evaluated

    @cached_property
    def root(self) -> Combination:
        return combination(self.matched.root, len(self.matched.leaves))

    def total(self) -> Estimate:
        """The risk under the scenario."""
        return self._estimate(self.evaluated)

    def within(self, domain: Flags) -> Estimate | None:
        """The risk for some samples only; None if a branch with weight applies to none of them."""
        if not (domain & self.used).any():
            return None
        evaluated = evaluate(self.tensor, self.matched, self.loss, self.of_leaf, used=self.used, domain=domain)
        if np.isnan(evaluated.mean[self.root.weights != 0]).any():
            return None
        return self._estimate(evaluated)

    def by_class(self) -> dict[int, Estimate | None]:
        """Label -> the risk for samples of that class."""
        labels = np.unique(self.tensor.label[self.used])
        return {int(label): self.within(self.tensor.label == label) for label in labels if label >= 0}

    def by_stratum(self) -> dict[str, dict[str, Estimate | None]]:
        """Stratum -> value -> the risk for samples with that value."""
        return {
            name: {str(value): self.within(column == value) for value in np.unique(column[self.used]) if value}
            for name, column in self.tensor.strata.items()
        }

    def tree(self) -> Indicator:
        """The tree of all indicators."""
        return _TreeBuilder(self).root()

    def rng(self, path: str = "") -> np.random.Generator:
        """Generator for the intervals of one branch, independent of the others."""
        return generator("indicator", self.seed, path)

    def _estimate(self, evaluated: Evaluated) -> Estimate:
        return estimate(evaluated, self.root, value_of(evaluated, self.matched.root), self.level, self.rng)


def scenario_risk(
    tensor: RiskTensor,
    scenario: Scenario,
    *,
    loss: str | None = None,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> ScenarioRisk:
    """Match a scenario with a tensor; samples without a verdict of a used arm are left out and counted."""
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    name = tensor.named_loss(loss)
    seed = int((rng or generator("scenario", scenario.name)).integers(2**63))
    matched = match_scenario(scenario, tensor, np.random.default_rng(seed))
    of_leaf = leaf_values(tensor, matched, name)
    if not of_leaf.complete.any():
        raise RiskError(
            f"{scenario.name}: no sample has a verdict from every arm ({of_leaf.n_unfinished} unfinished, "
            f"{of_leaf.n_without_verdict} with errors); finish the run, or see `advrisk status`"
        )
    return ScenarioRisk(tensor, matched, name, level, seed, of_leaf, of_leaf.complete)


def with_samples(whole: ScenarioRisk, used: Flags) -> ScenarioRisk:
    """The same risk on fewer samples."""
    return replace(whole, used=whole.used & used)


def risk(
    tensor: RiskTensor,
    scenario: Scenario,
    *,
    loss: str | None = None,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Estimate:
    """The expected loss in a deployment (Schwerdtner et al., "Risk Assessment for Machine Learning Models").

    R = sum of weight x mean loss over the leaves of the scenario. The sampling units are samples, not rows, as one
    sample appears under many arms.
    """
    return scenario_risk(tensor, scenario, loss=loss, level=level, rng=rng).total()


def indicator_tree(
    tensor: RiskTensor,
    scenario: Scenario,
    *,
    loss: str | None = None,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Indicator:
    """The risk of every branch, with its contribution to the total; the root is the whole scenario."""
    return scenario_risk(tensor, scenario, loss=loss, level=level, rng=rng).tree()


def arm_risks(tensor: RiskTensor, *, loss: str | None = None, level: float = 0.95) -> dict[str, Estimate]:
    """Arm -> its mean loss over repeats and samples with a verdict.

    Arms without any verdict, and those that skipped samples which the loss needs, are left out.
    """
    risks = {}
    unasked = tensor.unasked.get(tensor.named_loss(loss), ())
    for arm in tensor.arms:
        if arm in unasked:
            continue
        alone = Scenario.from_mapping(arm, {"arm": {"weight": 1, "arms": [arm], "aggregate": "mean"}})
        if not np.isnan(tensor.by_arm(tensor.named_loss(loss)).mean[tensor.arms.index(arm)]).all():
            risks[arm] = risk(tensor.select(arm=arm), alone, loss=loss, level=level)
    return risks


UNIFORM = "uniform"


def uniform_scenario(tensor: RiskTensor, *, name: str = UNIFORM) -> Scenario:
    """All corruptions equally weighted: by cause, then by family, then by arm; no clean inputs, no attacks.

    It describes no deployment; it summarises the arms of a study that states no scenario.
    """
    causes: dict[str, dict[str, list[str]]] = {}
    for arm, kind, family, cause in zip(tensor.arms, tensor.kind, tensor.family, tensor.cause, strict=True):
        if kind == "corruption":
            causes.setdefault(cause or "other", {}).setdefault(family or arm, []).append(arm)
    if not causes:
        raise RiskError(f"{tensor.model or 'this tensor'} has no corruption to average; state a scenario")
    tree = {
        cause: {
            "weight": 1 / len(causes),
            "of": {
                family: {"weight": 1 / len(families), "of": _equal(arms)} if len(arms) > 1 else _only(arms, families)
                for family, arms in families.items()
            },
        }
        for cause, families in causes.items()
    }
    return Scenario.from_mapping(name, tree)


def _equal(arms: list[str]) -> dict[str, Any]:
    return {arm: {"weight": 1 / len(arms), "arms": [arm]} for arm in arms}


def _only(arms: list[str], families: Mapping[str, Any]) -> dict[str, Any]:
    return {"weight": 1 / len(families), "arms": arms}


class _TreeBuilder:
    """Builds indicators from the leaves up, so that contributions sum exactly."""

    def __init__(self, risk: ScenarioRisk) -> None:
        self.risk, self.evaluated, self.level = risk, risk.evaluated, risk.level

    def root(self) -> Indicator:
        return self._indicator(self.risk.matched.root, "", 1.0, None)

    def _indicator(self, node: Node, path: str, weight: float, drawn: Floats | None) -> Indicator:
        children = []
        for number, child in enumerate(node.children):
            share = None if node.drawn is None or np.ptp(node.drawn[:, number]) == 0 else node.drawn[:, number]
            below = _product(drawn, share, weight, float(node.shares[number]))
            inside = f"{path}.{child.name}" if path else child.name
            children.append(self._indicator(child, inside, weight * float(node.shares[number]), below))
        combined = combination(node, len(self.risk.matched.leaves))
        scaled = combined.of_scale(weight, drawn)
        return Indicator(
            name=node.name,
            path=path,
            weight=weight,
            value=self._estimate(combined, value_of(self.evaluated, node), path),
            contribution=self._estimate(scaled, value_of(self.evaluated, node, weight), path),
            weights_part=weights_part(self.evaluated, scaled),
            aggregate="shares" if node.leaf is None else self.risk.matched.leaves[node.leaf].aggregate,
            arms=self._arms(node),
            n=self.evaluated.n_under(combined.weights),
            children=tuple(children),
        )

    def _estimate(self, combined: Combination, value: float, path: str) -> Estimate:
        return estimate(self.evaluated, combined, value, self.level, partial(self.risk.rng, path))

    def _arms(self, node: Node) -> tuple[str, ...]:
        leaves = [self.risk.matched.leaves[one.leaf] for one in node.walk() if one.leaf is not None]
        return tuple(self.risk.tensor.arms[arm] for arm in sorted({arm for leaf in leaves for arm in leaf.arms}))


def _product(outer: Floats | None, inner: Floats | None, weight: float, share: float) -> Floats | None:
    """Draws of a product of shares; None if both are numbers."""
    if outer is None and inner is None:
        return None
    return np.asarray((weight if outer is None else outer) * (share if inner is None else inner))
