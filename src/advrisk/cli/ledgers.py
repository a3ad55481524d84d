"""`advrisk import`, `export` and `ledger`: tables and inputs that come from elsewhere, or go there."""

from pathlib import Path
from typing import Annotated

import typer

from advrisk.cli import care
from advrisk.cli.options import AsJson, RunFolder
from advrisk.cli.replaying import replay
from advrisk.cli.verbosity import App, note
from advrisk.core.errors import StudyError
from advrisk.core.names import visible_line
from advrisk.core.traits import Norm

_TENSOR = "risk"  # among the tables that can be exported

ledger_app = App(help="Check, compact, compare, merge, replay or query ledgers.", no_args_is_help=True)
for verb in (care.check, care.compact, care.diff, care.merge, replay):
    ledger_app.command()(verb)


def import_(
    source: Annotated[Path, typer.Argument(help="A .csv or .parquet file of outcomes, or of detector scores.")],
    folder: RunFolder,
    norm: Annotated[Norm | None, typer.Option(help="The norm of a column called `distance`.")] = None,
) -> None:
    """Import outcomes, or a detector's scores, from another tool.

    Outcomes need the columns model, sample, and distance (with --norm) or d_l0, d_l1, d_l2, d_linf. Scores need
    detector, model, arm (`clean` for clean inputs), sample and score, and a run that holds these.

    Example: advrisk import distances.csv runs/theirs --norm linf
    """
    from advrisk.ledger import writable_storage
    from advrisk.ledger.exchange.importing import import_outcomes
    from advrisk.ledger.exchange.score_file import holds_scores, import_scores, incomplete

    if holds_scores(source):
        if norm is not None:
            raise StudyError(f"--norm {norm} is for a column of distances, and {source} holds scores; leave it out")
        with writable_storage(folder, inputs=()) as storage:
            found = import_scores(source, storage)
        left_out = f", {found.n_left_out} of inputs that did not succeed left out" if found.n_left_out else ""
        names = " and ".join(map(visible_line, found.detectors))
        print(f"{found.n_scores} scores of {names} imported{left_out}. Next: advrisk show detection {folder}")
        for sentence in incomplete(found, folder):
            note(visible_line(sentence))
        return
    with writable_storage(folder, inputs=()) as storage:
        n = import_outcomes(source, storage, norm=norm)
    print(f"{n} rows imported. Next: advrisk show {folder}")


def export(
    folder: RunFolder,
    target: Annotated[
        str | None,
        typer.Argument(help="A .csv or .parquet file for a table, .npz for inputs, .nc for the risk tensor."),
    ] = None,
    table: Annotated[
        str, typer.Option(help="outcomes, outputs, scores, measures, cells, arms, models, samples; or risk, a tensor.")
    ] = "outcomes",
    model: Annotated[
        str | None, typer.Option(help="With .npz: inputs against this model only. Of a tensor: whose it is.")
    ] = None,
    arm: Annotated[str | None, typer.Option(help="With .npz: inputs of this arm only; * is allowed.")] = None,
    to_score: Annotated[
        bool, typer.Option("--to-score", help="With .npz: all that a detector must score, clean inputs too.")
    ] = False,
    mlflow: Annotated[
        str | None,
        typer.Option("--mlflow", metavar="URI", help="Log numbers and report to MLflow, as in sqlite:///mlflow.db."),
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="With --mlflow: the experiment to log into (default: the study's name).")
    ] = None,
) -> None:
    """Export tables, adversarial inputs or the risk tensor.

    The risk tensor holds what every answer costs. With --mlflow, log the run's numbers and its report there instead.

    Example: advrisk export runs/signs adversarial.npz --model plain
    """
    from advrisk.cli.targets import hint_at_rest
    from advrisk.ledger import Ledger
    from advrisk.ledger.exchange.exporting import export_inputs, export_table
    from advrisk.ledger.sync.files import output_file

    if mlflow is not None:
        _export_to_mlflow(folder, mlflow, experiment, target=target)
        return
    if target is None:
        raise StudyError("name a file to write to, as in `advrisk export RUN outcomes.csv`; or --mlflow URI")
    ledger = Ledger.open(folder).named()
    with output_file(target) as path:
        if to_score:
            from advrisk.ledger.exchange.to_score import export_to_score

            if path.suffix != ".npz":
                raise StudyError(f"{target}: --to-score writes inputs; let the name end in .npz")
            n = export_to_score(ledger.path.parent, ledger, path, model=model, arm=arm)
            said = f"{n} inputs to score written to {target}. Next: advrisk import SCORES.csv {folder}"
        elif path.suffix == ".nc" or table == _TENSOR:
            said = f"{_export_tensor(folder, path, model)} written to {target}"
        elif path.suffix == ".npz":
            n = export_inputs(ledger.path.parent, ledger, path, model=model, arm=arm)
            said = f"{n} inputs written to {target}"
        elif path.suffix not in (".csv", ".parquet"):
            raise StudyError(
                f"{target}: the name must end in .csv or .parquet for a table, .npz for inputs, .nc for the risk tensor"
            )
        else:
            said = f"{export_table(ledger, table, path)} rows written to {target}"
    if table != _TENSOR and not target.endswith(".nc"):  # which is of the samples that count
        hint_at_rest(ledger)
    print(said)


def _export_tensor(folder: str, target: Path, model: str | None) -> str:
    """`advrisk export RUN risk.nc --model NAME`: what every answer of a model costs, under the study's losses.

    Returns what it is."""
    from advrisk.api import Run

    run = Run.open(folder)
    if model is None:
        names = ", ".join(row["model"] for row in run.models())
        raise StudyError(f"a risk tensor is of one model; add --model NAME: {names}")
    if target.suffix not in (".nc", ".parquet"):
        raise StudyError(f"{target}: a risk tensor is written as .nc (NetCDF) or .parquet")
    tensor = run.tensor(model)
    write = tensor.to_netcdf if target.suffix == ".nc" else tensor.to_parquet
    write(target)
    sizes = " × ".join(f"{size} {name}" for name, size in zip(tensor.data.dims, tensor.data.shape, strict=True))
    return f"the risk tensor of {model} ({sizes})"


@ledger_app.command("sql")
def ledger_sql(
    folder: RunFolder,
    query: Annotated[str, typer.Argument(help="SQL over outcomes, outputs, cells, arms, models, samples.")],
    as_json: AsJson = False,
) -> None:
    """Query the ledger in SQL.

    Example: advrisk ledger sql runs/signs "SELECT model, outcome, count(*) AS n FROM outcomes GROUP BY ALL"
    """
    from advrisk.cli.targets import hint_at_rest
    from advrisk.core.plain import json_text
    from advrisk.ledger import Ledger
    from advrisk.render.terminal import print_rows

    ledger = Ledger.open(folder).named()
    rows = ledger.query(query).to_pylist()
    hint_at_rest(ledger)
    print(json_text(rows)) if as_json else print_rows(rows)


@ledger_app.command("delete-inputs")
def ledger_delete_inputs(
    folder: RunFolder,
    model: Annotated[str | None, typer.Option(help="Delete the inputs kept against this model.")] = None,
    sample: Annotated[str | None, typer.Option(help="Delete every stored input of this sample.")] = None,
) -> None:
    """Delete stored inputs of a model or a sample.

    The outcome rows stay.

    Example: advrisk ledger delete-inputs runs/signs --sample signs/000017
    """
    from advrisk.ledger import Ledger, writable_storage
    from advrisk.ledger.maintenance.deleting import delete_inputs

    with writable_storage(folder) as storage:
        ledger = Ledger.open(storage)
        n = delete_inputs(ledger.path.parent, ledger, model=model, sample=sample)
    print(f"{n} files changed")


def _export_to_mlflow(folder: str, uri: str, experiment: str | None, *, target: str | None) -> None:
    """Log a run, and say where it is."""
    from advrisk.api import Run

    if target is not None:
        raise StudyError(f"--mlflow writes no file; leave {target} out")
    logged = Run.open(folder).log_to_mlflow(experiment, uri)
    print(f"logged as run {logged.run_id} of experiment {logged.experiment!r} at {logged.tracking_uri}")
