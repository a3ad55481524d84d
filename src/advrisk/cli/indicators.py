"""Key risk indicators as text for a terminal: which model, how large the risk, and what drives it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from advrisk.cli.lines import show_result
from advrisk.core.errors import StudyError
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import percent_text
from advrisk.render.terminal import indented, new_table, plain_cells, print_fitting
from advrisk.report.indicators import drivers, on_risk, risk_headline, short_verdict, tree_lines

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.indicators.assessment import IndicatorAssessment
    from advrisk.risk.indicators.comparison import ModelRisk, ScenarioResult
    from advrisk.risk.indicators.robustness import Robustness
    from advrisk.risk.indicators.tree import Indicator

TENSOR = "risk"  # among the tables that can be exported
_CONTRIBUTORS = 5
_MODELS = 4  # whose columns stand beside each other in the tree
_BRANCH = 26  # columns of the terminal for the names of branches, and for each model
_MODEL = 18


def show_indicators(
    run: "Run",
    scenarios: Path | None,
    scenario: list[str] | None,
    losses: list[str] | None,
    models: list[str] | None,
    arms: list[str] | None,
    changes: list[str] | None,
    *,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show indicators RUN`: every scenario under every loss; one model in detail where it is named."""
    found = run.indicators(
        scenarios=scenarios,
        scenario=scenario,
        losses=run.named_losses(losses),
        models=models,
        arms=arms,
        what_if=changed_weights(changes),
    )
    show_result(
        found, found.as_dict, lambda: print_indicators(found, details=bool(models)), out_csv=out_csv, as_json=as_json
    )


def changed_weights(written: Sequence[str] | None) -> dict[str, str]:
    """`wet.rain=0.9` as path and weight."""
    changes: dict[str, str] = {}
    for text in written or ():
        path, sign, weight = text.rpartition("=")
        if not sign or not path.strip() or not weight.strip():
            raise StudyError(f"--what-if takes a branch and its weight, as in wet.rain=0.9; found {text!r}")
        if path.strip() in changes:
            raise StudyError(
                f"--what-if gives {path.strip()} two weights, {changes[path.strip()]} and {weight.strip()}"
            )
        changes[path.strip()] = weight.strip()
    return changes


def export_tensor(folder: str, target: Path, model: str | None) -> str:
    """`advrisk export RUN risk.nc --model NAME`: what every answer of a model costs, under the study's losses.

    Returns what it is."""
    from advrisk.api import Run
    from advrisk.assess.indicators.tensor_file import write_tensor

    run = Run.open(folder)
    if model is None:
        names = ", ".join(row["model"] for row in run.models())
        raise StudyError(f"a risk tensor is of one model; add --model NAME: {names}")
    if target.suffix not in (".nc", ".parquet"):
        raise StudyError(f"{target}: a risk tensor is written as .nc (NetCDF) or .parquet")
    tensor = run.tensor(model)
    write_tensor(tensor, target)
    sizes = " × ".join(f"{size} {name}" for name, size in zip(tensor.data.dims, tensor.data.shape, strict=True))
    return f"the risk tensor of {model} ({sizes})"


def print_indicators(found: "IndicatorAssessment", *, details: bool) -> None:
    """The ranking and the tree of every scenario and loss, then what stands beside."""
    console = Console()
    for result in found.results:
        _print_result(console, result, details=details)
    _print_robustness(console, found)
    for sentence in (*on_risk(found), *found.notes):
        indented(console, f"· {sentence}", by=0)


def _print_result(console: Console, result: "ScenarioResult", *, details: bool) -> None:
    head = f"{result.scenario.name}: {result.loss}, {len(result.samples)} samples"
    console.print(head, style="bold", markup=False, highlight=False)
    indented(console, risk_headline(result), by=0)
    table = new_table("model", "risk", "best", "verdict")
    for model in result.models:
        best = "–" if model.probability_best is None else percent_text(model.probability_best, 1)
        table.add_row(
            *plain_cells([model.model, _stacked(model.risk), best, short_verdict(result.branches[""], model.model)])
        )
    console.print(table)
    for model in result.models[: None if details else _MODELS]:
        indented(console, f"{model.model}: risk from {drivers(model, most=_CONTRIBUTORS)}", by=0)
    console.print()
    _print_trees(console, result)
    if details:
        for model in result.models:
            _print_groups(console, model)


def _print_trees(console: Console, result: "ScenarioResult") -> None:
    """Branches as lines, models as columns, as many beside each other as fit."""
    fit = max(1, min(_MODELS, (console.width - _BRANCH - 10) // _MODEL))
    for first in range(0, len(result.models), fit):
        models = result.models[first : first + fit]
        console.print(_tree_table(models))


def _tree_table(models: Sequence["ModelRisk"]) -> Table:
    table = new_table("risk given the branch", "weight", *(model.model for model in models))
    columns = [tree_lines(model.tree) for model in models]
    for row in zip(*columns, strict=True):
        branch = row[0].branch
        name = f"{'  ' * row[0].depth}{branch.name}{_aggregated(branch)}"
        table.add_row(*plain_cells([name, f"{branch.weight:.4g}", *(_stacked(line.branch.value) for line in row)]))
    return table


def _aggregated(one: "Indicator") -> str:
    """A mark where the worst of several arms counts."""
    return " (worst)" if one.aggregate == "max" and len(one.arms) > 1 else ""


def _print_groups(console: Console, model: "ModelRisk") -> None:
    groups: Mapping[str, Mapping[Any, Estimate | None]] = {"class": model.by_class, **model.by_stratum}
    for name, values in groups.items():
        rows = [
            [str(value), "–", "0"] if estimate is None else [str(value), str(estimate), str(estimate.n)]
            for value, estimate in values.items()
        ]
        print_fitting(console, [f"{model.model}, {name}", "risk", "samples"], rows)


def _print_robustness(console: Console, found: "IndicatorAssessment") -> None:
    """The numbers that are often taken for risk, beside it."""
    if found.robustness:
        console.print("Robustness, which knows nothing of the scenario:", markup=False, highlight=False)
        columns = ["model", "norm", "mean distance", "ρ1, wrong at 0", "within eps", "adversarial risk (ρ2)"]
        print_fitting(console, columns, [_robustness(one) for one in found.robustness])
    for model, measures in found.measures.items():
        for name, estimate in measures.items():
            indented(console, f"{model}: {name.partition('@')[0]} {estimate} on {estimate.n} samples", by=0)


def _robustness(one: "Robustness") -> list[str]:
    distance = "–" if one.mean_distance is None else _stacked(one.mean_distance.estimate)
    with_wrong = "–" if one.rho_1 is None else _stacked(one.rho_1)
    eps = "–" if one.eps is None else f"{one.eps:.4g}"
    wrong = "–" if one.adversarial_risk is None else _stacked(one.adversarial_risk)
    return [one.model, one.norm, distance, with_wrong, eps, wrong]


def _stacked(estimate: Estimate) -> str:
    return str(estimate).replace(" [", "\n[")
