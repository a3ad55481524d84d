"""`advrisk show indicators`: which scenarios and weights are asked about; and a risk tensor as a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advrisk.cli.lines import show_finding
from advrisk.core.errors import StudyError

if TYPE_CHECKING:
    from advrisk.api import Run


TENSOR = "risk"  # among the tables that can be exported


def show_indicators(
    run: "Run",
    scenarios: Path | None,
    scenario: list[str] | None,
    losses: list[str] | None,
    models: list[str] | None,
    arms: list[str] | None,
    changes: list[str] | None,
    *,
    details: bool,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show indicators RUN`: every scenario under every loss; with details where models are named."""
    found = run.indicators(
        scenarios=scenarios,
        scenario=scenario,
        losses=run.named_losses(losses),
        models=models,
        arms=arms,
        what_if=changed_weights(changes),
    )
    show_finding(run, "indicators", found, details=details or bool(models), out_csv=out_csv, as_json=as_json)


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
    from advrisk.ledger.sync.files import output_file

    run = Run.open(folder)
    if model is None:
        names = ", ".join(row["model"] for row in run.models())
        raise StudyError(f"a risk tensor is of one model; add --model NAME: {names}")
    if target.suffix not in (".nc", ".parquet"):
        raise StudyError(f"{target}: a risk tensor is written as .nc (NetCDF) or .parquet")
    tensor = run.tensor(model)
    with output_file(target, keep=True) as path:
        write = tensor.to_netcdf if path.suffix == ".nc" else tensor.to_parquet
        write(path)
    sizes = " × ".join(f"{size} {name}" for name, size in zip(tensor.data.dims, tensor.data.shape, strict=True))
    return f"the risk tensor of {model} ({sizes})"
