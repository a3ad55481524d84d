"""Comparison of models under one scenario: common samples, paired differences, and verdicts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.core.plain import InJson, plain_fields
from advrisk.core.seeds import generator
from advrisk.core.tables import Columns, Row
from advrisk.risk.absolute import shares_of_best
from advrisk.risk.bounded_mean import widened
from advrisk.risk.decision import Pair, ahead_of, decided_pairs, index_of, undecided_with
from advrisk.risk.indicators.bands import Contributions, SampleBand, bands
from advrisk.risk.indicators.estimates import ONE, Combination, combination
from advrisk.risk.indicators.matching import Node, arms_used
from advrisk.risk.indicators.scenario import Scenario
from advrisk.risk.indicators.tensor import Floats, RiskTensor
from advrisk.risk.indicators.tree import Indicator, ScenarioRisk, scenario_risk, with_samples
from advrisk.risk.proportion import half_width, t_quantile

LEAST = "least risk"  # the verdict on the model to ship
_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class BranchComparison:
    """The risk of models given one branch, on the same samples."""

    path: str
    models: tuple[str, ...]
    n: int
    level: float
    estimates: Mapping[str, Estimate]
    clean_error: Mapping[str, float]  # the part of the value from clean inputs
    _influence: Floats = field(repr=False)  # (models, samples)
    _drawn: Floats = field(repr=False)  # (models, draws of the weights)
    _bands: Mapping[str, tuple[SampleBand, ...]] = field(repr=False)  # the same samples and shares for all models
    _parts: Mapping[str, Contributions] = field(repr=False)
    _bounds: tuple[float, float] = field(repr=False)
    _seed: int = field(repr=False)

    def difference(self, a: str, b: str) -> Estimate:
        """Risk of `a` minus risk of `b`, with the interval of the *paired* difference.

        Common variation cancels: hard samples, and draws of uncertain weights. The interval combines t intervals of
        bands of samples with similar weight. For a loss of known range these have the guards of `half_width`, so the
        width is never 0, and are at least as wide as Gaffke's at either end. The latter is also valid if one model's
        risk depends on rare large losses, which few samples show.
        """
        of_weights = self.standard_errors(a, b)[1]
        value = self.estimates[a].value - self.estimates[b].value
        span = self._bounds[1] - self._bounds[0]
        parts = self._parts[a].minus(self._parts[b]) if np.isfinite(span) else None
        below, above = [], []
        for of_a, of_b in zip(self._bands[a], self._bands[b], strict=True):
            gap, share, n = float(of_a.value[0] - of_b.value[0]), float(of_a.share[0]), float(of_a.n[0])
            half = self._half_width(a, b, of_a, of_b)
            low, high = gap - half, gap + half
            if parts is not None and n > ONE:
                low, high = widened(*parts.pseudo_values(of_a, gap, -span, span), (low, high), self.level)
            below.append(share * (gap - low))
            above.append(share * (high - gap))
        if of_weights > 0:
            half = float(t_quantile(max(self._degrees + 1, 2.0), self.level)) * of_weights
            below.append(half)
            above.append(half)
        low, high = value - float(np.hypot.reduce(below)), value + float(np.hypot.reduce(above))
        low, high = max(low, min(-span, value)), min(high, max(span, value))
        method = "paired, samples, t" if parts is None else "paired, samples, t and Gaffke"
        return Estimate(value, low, high, self.level, self.n, method)

    def standard_errors(self, a: str, b: str) -> tuple[float, float]:
        """Standard errors of the difference: the part that more samples reduce, and that of uncertain weights."""
        i, j = index_of(a, self.models), index_of(b, self.models)
        errors = [float(band.share[0]) * self._error(a, b, band) for band in self._bands[a]]
        return float(np.hypot.reduce(errors)), float((self._drawn[i] - self._drawn[j]).std())

    def _error(self, a: str, b: str, band: SampleBand) -> float:
        """Standard error of the mean difference among samples of a band."""
        each = self._influence[index_of(a, self.models)] - self._influence[index_of(b, self.models)]
        each = each if band.columns is None else each[band.columns]
        span = self._bounds[1] - self._bounds[0]
        unknown = float(band.alone[0]) * span if band.alone[0] > 0 else 0.0
        scale = abs(self.estimates[a].value) + abs(self.estimates[b].value)
        error = float(np.hypot(np.sqrt(each @ each), unknown))
        return error / float(band.share[0]) if error > 1e-12 * scale and band.share[0] > 0 else 0.0

    def _half_width(self, a: str, b: str, of_a: SampleBand, of_b: SampleBand) -> float:
        """Half width of the interval of that difference, at most the distance to the ends of the range."""
        span, n = self._bounds[1] - self._bounds[0], float(of_a.n[0])
        most = span + abs(float(of_a.value[0] - of_b.value[0]))
        if n <= ONE:
            return most
        error = self._error(a, b, of_a)
        if not np.isfinite(span):
            return float(t_quantile(n, self.level)) * error
        return min(span * half_width(error / span, n, self.level), most)

    @cached_property
    def _degrees(self) -> float:
        """Degrees of freedom of all bands."""
        return float(sum(band.n[0] - 1 for band in self._bands[self.models[0]]))

    def undecided(self, a: str, b: str) -> bool:
        """Whether the paired interval of the difference contains 0."""
        difference = self.difference(a, b)
        return difference.low <= 0 <= difference.high

    @cached_property
    def probability_best(self) -> Mapping[str, float]:
        """Probability that a model has the least risk; ties are split equally."""
        spread = self._influence @ self._influence.T
        rng = generator("best", self._seed, self.path)
        roots, vectors = np.linalg.eigh(spread)
        noise = rng.standard_normal((_DRAWS, len(self.models))) @ (vectors * np.sqrt(np.maximum(roots, 0.0))).T
        drawn = self._drawn[:, np.arange(_DRAWS) % self._drawn.shape[1]].T
        return dict(zip(self.models, shares_of_best(drawn + noise), strict=True))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of models, the one with less risk first."""
        return decided_pairs(self)

    def verdict(self, model: str) -> str:
        """`least risk`, `more risk than …`, or `undecided against …`."""
        index_of(model, self.models)
        if len(self.models) == 1:
            return "no other model to compare with"
        if lower := ahead_of(model, self.pairs):
            return f"more risk than {', '.join(lower)}"
        undecided = undecided_with(model, self.pairs)
        return f"undecided against {', '.join(undecided)}" if undecided else LEAST


@dataclass(frozen=True, eq=False)
class ModelRisk:
    """One model under one scenario and loss."""

    model: str
    tree: Indicator
    by_class: Mapping[int, Estimate | None]  # None: a branch cannot happen to any sample of the class
    by_stratum: Mapping[str, Mapping[str, Estimate | None]]
    verdict: str
    probability_best: float | None  # None where there is no other model

    in_json: ClassVar[InJson] = {"risk": "risk"}

    @property
    def risk(self) -> Estimate:
        return self.tree.value

    @property
    def contributors(self) -> tuple[Indicator, ...]:
        """Leaves of the scenario, the largest contribution first."""
        return self.tree.leaves()

    def as_dict(self) -> dict[str, Any]:
        contributors = [
            {"path": one.path, "weight": one.weight, **one.contribution.as_dict()} for one in self.contributors
        ]
        return plain_fields(self) | {"contributors": contributors}


@dataclass(frozen=True, eq=False)
class ScenarioResult:
    """Models under one scenario and loss, on the samples on which every arm gave a verdict for all of them."""

    scenario: Scenario
    loss: str
    bounds: tuple[float, float]  # between which the loss lies
    level: float
    models: tuple[ModelRisk, ...]  # least risk first
    branches: Mapping[str, BranchComparison]  # path -> comparison; "" is the whole scenario
    samples: tuple[str, ...]
    n_samples: int  # all there are
    n_unfinished: int
    n_without_verdict: int

    in_json: ClassVar[InJson] = {
        "scenario": None,
        "scenario.name": "scenario",
        "scenario.source": "weights",
        "bounds": "range",
        "samples": None,
        "branches": None,
        "least_bad": "least_bad",
        "pairs": "pairs",
    }

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of models under the whole scenario."""
        return self.branches[""].pairs

    @property
    def least_bad(self) -> str | None:
        """The model with the least risk, or None if that is undecided."""
        return self.models[0].model if self.models[0].verdict == LEAST else None

    def of(self, model: str) -> ModelRisk:
        """Results of one model."""
        by_model = {one.model: one for one in self.models}
        if model not in by_model:
            raise RiskError(f"no model {model!r} was compared; {did_you_mean(model, by_model)}")
        return by_model[model]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        branches = [
            {
                "path": path,
                "models": {name: of.as_dict() | {"verdict": one.verdict(name)} for name, of in one.estimates.items()},
            }
            for path, one in self.branches.items()
        ]
        return plain_fields(self) | {"n": len(self.samples), "branches": branches}

    def rows(self) -> Iterator[Row]:
        """One row for each model and branch, class or stratum."""
        for one in self.models:
            common = {"scenario": self.scenario.name, "loss": self.loss, "model": one.model}
            for indicator in one.tree.walk():
                yield {
                    **common,
                    "kind": "branch",
                    "path": indicator.path,
                    "weight": indicator.weight,
                    **_estimate_columns("", indicator.value),
                    **_estimate_columns("contribution", indicator.contribution),
                    "level": indicator.value.level,
                    "weights_part": indicator.weights_part,
                    "aggregate": indicator.aggregate,
                    "arms": " ".join(indicator.arms),
                    "n": indicator.n,
                    "verdict": self.branches[indicator.path].verdict(one.model),
                }
            groups = {"class": {str(label): risk for label, risk in one.by_class.items()}, **one.by_stratum}
            for name, of_value in groups.items():
                for value, risk in of_value.items():
                    yield {
                        **dict.fromkeys(COLUMNS),
                        **common,
                        "kind": name,
                        "path": value,
                        **_estimate_columns("", risk),
                        "level": risk.level if risk else None,
                        "n": risk.n if risk else 0,
                    }


# `kind` is branch, class or the name of a stratum; a class or stratum has neither weight nor contribution.
COLUMNS: Columns = {
    **dict.fromkeys(("scenario", "loss", "model", "kind", "path"), "text"),
    **dict.fromkeys(("weight", "value", "low", "high"), "number"),
    "method": "text",
    **dict.fromkeys(("contribution", "contribution_low", "contribution_high"), "number"),
    "contribution_method": "text",
    **dict.fromkeys(("level", "weights_part"), "number"),
    **dict.fromkeys(("aggregate", "arms"), "text"),
    "n": "count",
    "verdict": "text",
}


def compare_models(
    tensors: Mapping[str, RiskTensor],
    scenario: Scenario,
    *,
    loss: str | None = None,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
    details: bool = True,
) -> ScenarioResult:
    """Compare models under one scenario, on the samples with a verdict for all of them.

    All models need the same arms, since a model with fewer attacks would appear stronger. Without `details`, risks by
    class and stratum are left out.
    """
    if not tensors:
        raise RiskError("there is no model to assess")
    seed = int((rng or generator("scenario", scenario.name)).integers(2**63))
    tensors = _aligned(tensors)
    risks = {
        model: scenario_risk(tensor, scenario, loss=loss, level=level, rng=np.random.default_rng(seed))
        for model, tensor in tensors.items()
    }
    _refuse_different_arms(risks)
    used = np.logical_and.reduce([one.used for one in risks.values()])
    if not used.any():
        raise RiskError(f"{scenario.name}: no sample has a verdict from every arm for all of {', '.join(risks)}")
    risks = {model: with_samples(one, used) for model, one in risks.items()}
    first = next(iter(risks.values()))
    trees = {model: one.tree() for model, one in risks.items()}
    branches = {path: _branch(path, node, risks, trees) for path, node in _paths(first.matched.root)}
    failed = np.logical_or.reduce([_failed(one) for one in risks.values()]) & ~used
    weighs = first.tensor.weight > 0
    rows = [_model(model, one, trees[model], branches[""], details=details) for model, one in risks.items()]
    return ScenarioResult(
        scenario=scenario,
        loss=first.loss,
        bounds=first.tensor.range_of(first.loss),
        level=level,
        models=tuple(sorted(rows, key=lambda row: row.risk.value)),
        branches=branches,
        samples=tuple(np.array(first.tensor.samples)[used].tolist()),
        n_samples=len(first.tensor.samples),
        n_unfinished=int((weighs & ~used & ~failed).sum()),
        n_without_verdict=int((weighs & failed).sum()),
    )


def _model(model: str, risk: ScenarioRisk, tree: Indicator, compared: BranchComparison, *, details: bool) -> ModelRisk:
    return ModelRisk(
        model=model,
        tree=tree,
        by_class=risk.by_class() if details else {},
        by_stratum=risk.by_stratum() if details else {},
        verdict=compared.verdict(model),
        probability_best=compared.probability_best[model] if len(compared.models) > 1 else None,
    )


def _branch(
    path: str, node: Node, risks: Mapping[str, ScenarioRisk], trees: Mapping[str, Indicator]
) -> BranchComparison:
    first = next(iter(risks.values()))
    combined: Combination = combination(node, len(first.matched.leaves))
    indicators = {model: tree.at(path) for model, tree in trees.items()}
    return BranchComparison(
        path=path,
        models=tuple(risks),
        n=next(iter(indicators.values())).n,
        level=first.level,
        estimates={model: one.value for model, one in indicators.items()},
        clean_error={model: _clean_part(one) for model, one in indicators.items()},
        _influence=np.stack([combined.weights @ one.evaluated.influence for one in risks.values()]),
        _drawn=np.stack([np.atleast_1d(combined.drawn_values(one.evaluated)) for one in risks.values()]),
        _bands={model: bands(one.evaluated, combined.weights[None], combined.weights) for model, one in risks.items()},
        _parts={model: Contributions.of(one.evaluated, combined.weights) for model, one in risks.items()},
        _bounds=first.tensor.range_of(first.loss),
        _seed=first.seed,
    )


def _clean_part(indicator: Indicator) -> float:
    """Contribution of clean inputs to the value."""
    if indicator.weight == 0:
        return 0.0
    clean = [one for one in indicator.walk() if not one.children and one.name == "clean"]
    return float(sum(one.contribution.value for one in clean) / indicator.weight)


def _paths(root: Node) -> list[tuple[str, Node]]:
    """Each node with its path in the tree of indicators."""
    paths: list[tuple[str, Node]] = []
    waiting = [("", root)]
    while waiting:
        path, node = waiting.pop()
        paths.append((path, node))
        waiting += [(f"{path}.{child.name}" if path else child.name, child) for child in reversed(node.children)]
    return paths


def _aligned(tensors: Mapping[str, RiskTensor]) -> dict[str, RiskTensor]:
    """Restrict tensors to their common samples in the same order."""
    first = next(iter(tensors.values()))
    if all(tensor.samples == first.samples for tensor in tensors.values()):
        return dict(tensors)
    common = set(first.samples).intersection(*(tensor.samples for tensor in tensors.values()))
    order = [name for name in first.samples if name in common]
    if not order:
        raise RiskError(f"{', '.join(tensors)} have no sample in common")
    return {model: RiskTensor(tensor.data.sel(sample=order)) for model, tensor in tensors.items()}


def _refuse_different_arms(risks: Mapping[str, ScenarioRisk]) -> None:
    arms = {model: {one.tensor.arms[arm] for arm in arms_used(one.matched)} for model, one in risks.items()}
    all_arms = set().union(*arms.values())
    for model, own in arms.items():
        if missing := sorted(all_arms - own):
            raise RiskError(
                f"{model} has no answers under {', '.join(missing[:5])}, but other models have; name arms in the "
                "scenario that all models share (`arms:`), or run the missing ones"
            )


def _failed(risk: ScenarioRisk) -> Any:
    return risk.tensor.failed[:, list(arms_used(risk.matched))].any(axis=1)


def _estimate_columns(prefix: str, estimate: Estimate | None) -> Row:
    """An estimate as columns: `contribution`, `contribution_low`, …, or without a prefix `value`, `low`, …"""
    names = {"value": prefix, **{name: f"{prefix}_{name}" for name in ("low", "high", "method")}}
    return {column if prefix else name: getattr(estimate, name) if estimate else None for name, column in names.items()}
