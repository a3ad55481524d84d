"""Failure modes: the branches of a scenario that hurt a model most, and the samples that they hurt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from advrisk.assess.changes import Change
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.labels import NUMBERED, Labels
from advrisk.core.plain import InJson
from advrisk.core.tables import ESTIMATE, Columns, Row, Tabular
from advrisk.ledger import Ledger
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.risk.indicators.matching import Node
from advrisk.risk.indicators.tensor import CLEAN, Flags, Floats, Integers, RiskTensor
from advrisk.risk.indicators.tree import Indicator, ScenarioRisk, scenario_risk

BRANCHES = 3  # shown of each model
SAMPLES = 12  # shown of each branch
_MOST_ALIKE = 200  # samples of equal loss that are looked at, to show those of which the model is surest
_ROWS = """
    SELECT o.sample, o.arm, coalesce(o.repeat, 0) AS repeat, o.cell, o.outcome, o.prediction, o.clean_prediction,
           o.confidence, s.shard
    FROM outcomes o JOIN samples s USING (sample)
    WHERE o.model = $model AND list_contains($arms, o.arm) AND o.sample IN (SELECT unnest($samples))
"""


@dataclass(frozen=True)
class Failure:
    """One sample under one branch: the arm that did most harm to it, and what the model then said."""

    sample: str
    label: int | None
    arm: str
    repeat: int
    loss: float  # of this answer
    branch_loss: float  # of the sample under the branch: arms and repeats put together
    clean_loss: float | None  # of the clean input; None where nobody asked about that
    prediction: int | None
    confidence: float | None
    clean_prediction: int | None
    outcome: str
    cell: str
    shard: str

    @property
    def made_worse(self) -> bool:
        """Whether the branch did harm, rather than the input being as bad without it."""
        return self.clean_loss is None or self.branch_loss > self.clean_loss


@dataclass(frozen=True)
class Exhibit:
    """What was kept of a failure's input: pictures as PNG, or the features of a row that changed most."""

    clean: bytes = field(default=b"", repr=False)  # empty where it was not kept, or is no image
    perturbed: bytes = field(default=b"", repr=False)
    kept: bool = False  # the perturbed input, be it an image or not
    changes: tuple[Change, ...] = ()
    n_changed: int = 0  # features, of which `changes` are some


@dataclass(frozen=True)
class FailureMode:
    """One branch that hurts a model."""

    model: str
    path: str
    weight: float
    value: Estimate  # the risk, given this branch
    contribution: Estimate
    share: float | None  # of the model's whole risk; None where that is not positive
    aggregate: str
    n: int  # samples to which the branch can happen
    n_hurt: int  # those with a loss
    n_made_worse: int  # those with a larger loss than without it
    failures: tuple[Failure, ...]  # the worst first


# Of a branch, then of a sample that it hurts: `loss` is that of the answer.
COLUMNS: Columns = {
    **dict.fromkeys(("scenario", "scenario_loss", "model", "path"), "text"),
    **ESTIMATE,
    **dict.fromkeys(("weight", "contribution", "share"), "number"),
    **dict.fromkeys(("n_hurt", "n_made_worse"), "count"),
    "sample": "text",
    "label": "count",
    "arm": "text",
    "repeat": "count",
    **dict.fromkeys(("loss", "branch_loss", "clean_loss"), "number"),
    "prediction": "count",
    "confidence": "number",
    "clean_prediction": "count",
    **dict.fromkeys(("outcome", "cell", "shard"), "text"),
}


@dataclass(frozen=True)
class FailureModes(Tabular):
    """The worst branches of models under one scenario and loss."""

    scenario: str
    loss: str
    bounds: tuple[float, float]  # between which the loss lies
    models: tuple[str, ...]  # least risk first
    modes: tuple[FailureMode, ...]  # by model, then the largest contribution first
    exhibits: Mapping[Failure, Exhibit] | None = field(default=None, repr=False, compare=False)  # None: not looked for
    labels: Labels = NUMBERED  # of classes and features

    columns: ClassVar[Columns] = COLUMNS
    in_json: ClassVar[InJson] = dict.fromkeys(("bounds", "models", "exhibits", "labels"))

    def of(self, model: str) -> tuple[FailureMode, ...]:
        """Those of one model."""
        return tuple(mode for mode in self.modes if mode.model == model)

    def rows(self) -> list[Row]:
        """A row for each of the worst samples, with the risk of the branch that hurts it."""
        return [
            {"scenario": self.scenario, "scenario_loss": self.loss, "model": mode.model, "path": mode.path}
            | estimate_columns(mode.value)
            | {"weight": mode.weight, "contribution": mode.contribution.value, "share": mode.share}
            | {"n_hurt": mode.n_hurt, "n_made_worse": mode.n_made_worse}
            | vars(one)
            for mode in self.modes
            for one in mode.failures
        ]


def failure_modes(
    ledger: Ledger,
    result: ScenarioResult,
    tensors: Mapping[str, RiskTensor],
    *,
    models: Sequence[str] | None = None,
    n: int = SAMPLES,
    branches: int = BRANCHES,
) -> FailureModes:
    """For each model the branches that contribute most to its risk, and under each the samples with the largest loss.

    Branches that contribute alike come by their own risk, largest first; one without any loss is none. Of the samples,
    those come first to which the branch did harm: an input that costs as much clean says little about it. Then the
    larger loss counts, then the surer answer.
    """
    if n < 1 or branches < 1:
        raise RiskError(f"at least one sample and one branch are shown, found {n} and {branches}")
    chosen = [result.of(model) for model in models or [one.model for one in result.models]]
    modes: list[FailureMode] = []
    for one in chosen:
        asked = scenario_risk(tensors[one.model], result.scenario, loss=result.loss, level=result.level)
        leaves = leaf_places(asked.matched.root)
        used = np.isin(asked.tensor.samples, result.samples)
        for indicator in worst_leaves(one.tree)[:branches]:
            modes.append(_mode(ledger, asked, one.tree, indicator, leaves[indicator.path], used, n))
    return FailureModes(
        result.scenario.name, result.loss, result.bounds, tuple(one.model for one in chosen), tuple(modes)
    )


def worst_leaves(tree: Indicator) -> list[Indicator]:
    """Leaves with a loss: the largest contribution first, then the largest risk of its own."""
    found = [one for one in tree.leaves() if one.value.value > 0]
    return sorted(found, key=lambda one: (-one.contribution.value, -one.value.value, one.path))


def leaf_places(node: Node, path: str = "") -> dict[str, int]:
    """Path of each leaf, as `Indicator` names it -> its place among the leaves."""
    if node.leaf is not None:
        return {path: node.leaf}
    found: dict[str, int] = {}
    for child in node.children:
        found |= leaf_places(child, f"{path}.{child.name}" if path else child.name)
    return found


def _mode(
    ledger: Ledger, asked: ScenarioRisk, tree: Indicator, indicator: Indicator, leaf: int, used: Flags, n: int
) -> FailureMode:
    values: Floats = asked.of_leaf.values[leaf]
    can = used & asked.of_leaf.members[leaf] & ~np.isnan(values)
    hurt = can & (values > 0)
    worse = hurt & (values > np.nan_to_num(_clean_losses(asked.tensor, asked.loss)))
    return FailureMode(
        model=asked.tensor.model,
        path=indicator.path,
        weight=indicator.weight,
        value=indicator.value,
        contribution=indicator.contribution,
        share=indicator.contribution.value / tree.value.value if tree.value.value > 0 else None,
        aggregate=indicator.aggregate,
        n=int(can.sum()),
        n_hurt=int(hurt.sum()),
        n_made_worse=int(worse.sum()),
        failures=_failures(ledger, asked, indicator.arms, values, hurt, worse, n),
    )


def _failures(
    ledger: Ledger, asked: ScenarioRisk, arms: Sequence[str], values: Floats, hurt: Flags, worse: Flags, n: int
) -> tuple[Failure, ...]:
    """The worst of these samples, each with the answer that cost most."""
    places = _candidates(values, hurt, worse, n)
    names = [asked.tensor.samples[place] for place in places]
    wanted = {"model": asked.tensor.model, "arms": list(arms), "samples": names}
    rows: dict[str, list[dict[str, Any]]] = {}
    n_repeats = dict(zip(asked.tensor.arms, asked.tensor.repeats.tolist(), strict=True))
    for row in ledger.query(_ROWS, wanted).to_pylist():
        if row["repeat"] < n_repeats[row["arm"]]:  # others are of an earlier study
            rows.setdefault(row["sample"], []).append(row)
    clean = _clean_losses(asked.tensor, asked.loss)
    found = [
        _failure(asked, place, rows[name], float(values[place]), float(clean[place]))
        for place, name in zip(places, names, strict=True)
        if name in rows
    ]
    found.sort(key=lambda one: (not one.made_worse, -one.branch_loss, -one.loss, -(one.confidence or 0.0), one.sample))
    return tuple(found[:n])


def _candidates(values: Floats, hurt: Flags, worse: Flags, n: int) -> list[int]:
    """The first n samples in the order of harm, and those that are as bad as the last of them."""
    order = np.flatnonzero(hurt)
    order = order[np.lexsort((order, -values[order], ~worse[order]))]
    if order.size <= n:
        return [int(place) for place in order]
    last = order[n - 1]
    alike = (values[order] == values[last]) & (worse[order] == worse[last])
    end = int(np.flatnonzero(alike)[-1]) + 1
    return [int(place) for place in order[: max(n, min(end, _MOST_ALIKE))]]


def _failure(
    asked: ScenarioRisk, place: int, rows: Sequence[Mapping[str, Any]], branch_loss: float, clean_loss: float
) -> Failure:
    tensor = asked.tensor
    of_sample = tensor.data.values[tensor.losses.index(asked.loss), place]  # (arms, repeats)

    def cost(row: Mapping[str, Any]) -> float:
        return float(np.nan_to_num(of_sample[tensor.arms.index(row["arm"]), row["repeat"]], nan=-np.inf))

    worst = min(rows, key=lambda row: (-cost(row), row["outcome"] != "success", -(row["confidence"] or 0.0),
                                       row["arm"], row["repeat"]))  # fmt: skip
    unchanged = worst["prediction"] is None and worst["outcome"] != "rejected"
    label = int(tensor.label[place])
    return Failure(
        sample=tensor.samples[place],
        label=label if label >= 0 else None,
        arm=worst["arm"],
        repeat=worst["repeat"],
        loss=cost(worst),
        branch_loss=branch_loss,
        clean_loss=None if np.isnan(clean_loss) else clean_loss,
        prediction=worst["clean_prediction"] if unchanged else worst["prediction"],
        confidence=worst["confidence"],
        clean_prediction=worst["clean_prediction"],
        outcome=worst["outcome"],
        cell=worst["cell"],
        shard=worst["shard"],
    )


def _clean_losses(tensor: RiskTensor, loss: str) -> Floats:
    """What the clean inputs cost; nan where nobody asked."""
    clean: Integers = np.flatnonzero(np.array(tensor.kind) == CLEAN)
    if not clean.size:
        return np.full(len(tensor.samples), np.nan)
    return np.asarray(tensor.by_arm(loss).mean[clean[0]])
