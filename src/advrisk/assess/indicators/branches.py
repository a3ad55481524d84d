"""The branches of a scenario: the risk given each, and its contribution to the risk of a model."""

from collections.abc import Iterator

from advrisk.assess.indicators.figures import branch_bars, grouped_bars, sunburst
from advrisk.assess.indicators.words import branch_names, drivers, label, loss_kind, loss_text
from advrisk.core.numbers import percent_text
from advrisk.core.palette import Places
from advrisk.core.sections import (
    Alternatives,
    Cell,
    Column,
    Figure,
    Group,
    Section,
    Table,
    Text,
    Value,
    distinct_columns,
)
from advrisk.risk.indicators.comparison import ModelRisk, ScenarioResult
from advrisk.risk.indicators.tree import Indicator

_ON_BRANCH = (
    "How to read this: suppose that only this branch happened. Then a bar is the risk of a model. The first branch on "
    "the list contributes most to the risk of some model."
)
_ON_LEVELS = (
    "How to read this: each group of bars is one kind of disturbance, each bar one model. Long bars show what a model "
    "cannot bear, however rare that is. Brackets show how often it happens."
)
_ON_RING = (
    "How to read this: a branch contributes how often it happens times what it then costs; contributions sum to the "
    "risk. The whole ring is the risk of one model, and each inner slice is the sum of its outer slices."
)
_NO_RING = "The loss is zero, or a part of it is negative, so there is no ring."


def branches(result: ScenarioResult, places: Places) -> Iterator[Section]:
    """The risk given each branch, as a table and in figures, and the arms of each branch."""
    yield _risk_given_branches(result)
    inner = [node for node in result.models[0].tree.walk() if node.children]
    yield Group(
        "Branches side by side",
        (
            Text((_ON_LEVELS,), how=True),
            Alternatives("Show", tuple(_level(result, node, places) for node in inner)),
        ),
    )
    each = tuple(_branch(result, path, places) for path in _by_contribution(result))
    yield Group(
        "One branch over the models", (Text((_ON_BRANCH,), how=True), Alternatives("Branch", each)), folded=True
    )
    yield Group("Arms of each branch", (_arms(result),), folded=True)


def _risk_given_branches(result: ScenarioResult) -> Table:
    kind, names = loss_kind(result.bounds), [one.model for one in result.models]
    rows: list[tuple[Value, ...]] = []
    for depth, branch in tree_lines(result.models[0].tree):
        estimates = result.branches[branch.path].estimates
        rows.append((_name(depth, branch), branch.weight, *(estimates[name] for name in names)))
    columns = distinct_columns([Column("branch"), Column("weight", "weight"), *(Column(name, kind) for name in names)])
    return Table(f"Risk given each branch: {label(result)}", columns, tuple(rows))


def _arms(result: ScenarioResult) -> Table:
    words = {"max": "the worst on each sample", "mean": "their mean"}
    rows = (
        (one.path, words.get(one.aggregate, one.aggregate) if len(one.arms) > 1 else None, ", ".join(one.arms))
        for one in result.models[0].tree.walk()
        if not one.children
    )
    columns = (Column("branch"), Column("what counts"), Column("arms"))
    return Table(f"Arms of each branch: {label(result)}", columns, tuple(rows))


def contributions(result: ScenarioResult) -> Group:
    """The contributions to the risk of each model."""
    each = (
        Group(
            f"{one.model}: {loss_text(one.risk.value, result.bounds)}, from {drivers(one)}",
            (Group("", tuple(_contributions(result, one)), beside=True),),
            folded=True,
        )
        for one in result.models
    )
    return Group("What the risk is made of", (Text((_ON_RING,), how=True), *each))


def _contributions(result: ScenarioResult, one: ModelRisk) -> Iterator[Section]:
    ring = sunburst(one.tree, result.bounds)
    if ring is None:
        yield Text((_NO_RING,), how=True)
    else:
        yield Figure(
            f"Contributions to the risk of {one.model}: {label(result)}",
            ring,
            f"Contributions of the branches to the risk of {one.model}.",
        )
    kind, uncertain = loss_kind(result.bounds), result.scenario.uncertain
    columns = (
        Column("branch"),
        Column("weight", "weight"),
        Column("risk given the branch", kind),
        Column("contribution", kind),
        Column("share of the risk", "share"),
        *([Column("uncertainty from weights", "share")] if uncertain else []),
    )
    whole = one.tree.contribution.value
    rows: list[tuple[Value, ...]] = []
    for depth, branch in tree_lines(one.tree):
        share = branch.contribution.value / whole if whole > 0 else None
        more = (branch.weights_part,) if uncertain else ()
        rows.append((_name(depth, branch), branch.weight, branch.value, branch.contribution, share, *more))
    yield Table(f"What the risk of {one.model} is made of: {label(result)}", columns, tuple(rows))


def tree_lines(tree: Indicator, depth: int = 0) -> Iterator[tuple[int, Indicator]]:
    """The branches from the root down, each with its depth."""
    yield depth, tree
    for child in tree.children:
        yield from tree_lines(child, depth + 1)


def _name(depth: int, branch: Indicator) -> Cell:
    if not depth:
        return Cell("the whole scenario", mark="total")
    several = branch.aggregate == "max" and len(branch.arms) > 1
    return Cell(branch.name, (f"the worst of {len(branch.arms)} arms",) if several else (), depth=depth)


def _by_contribution(result: ScenarioResult) -> list[str]:
    """Paths of all branches, by their largest contribution to the risk of any model."""
    most = {
        path: max(risk.tree.at(path).contribution.value for risk in result.models) for path in result.branches if path
    }
    leaves = {risk.path for risk in result.models[0].tree.leaves()}
    return sorted(most, key=lambda path: (path not in leaves, -most[path], path))


def _branch(result: ScenarioResult, path: str, places: Places) -> Figure:
    shown = branch_names(result.models[0].tree)[path]
    parts = [
        (one.tree.at(path).contribution.value / one.risk.value, one.model)
        for one in result.models
        if one.risk.value > 0
    ]
    if parts:
        share, model = max(parts, key=lambda part: part[0])
        shown = f"{shown} – up to {percent_text(share)} of the risk ({model})"
    return Figure(
        f"Risk given {path}: {label(result)}",
        branch_bars(result, path, places=places),
        "Risk of each model given one branch, with intervals.",
        label=shown,
    )


def _level(result: ScenarioResult, one: Indicator, places: Places) -> Figure:
    return Figure(
        f"Branches {f'within {one.path}' if one.path else 'of the first level'}: {label(result)}",
        grouped_bars(result, one.path, places=places),
        "Risk given each branch, models side by side.",
        label=f"within {one.path}" if one.path else "first level of the scenario",
    )
