"""The verbs. Each reads arguments, calls the library, and prints."""

import json
import sys
from contextlib import redirect_stdout
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from advrisk.cli import DONE, ERROR_ROWS, UNDECIDED
from advrisk.cli.evasion import evasion
from advrisk.cli.label import label
from advrisk.cli.options import (
    AsJson,
    Device,
    OfAnswers,
    OfArms,
    OfCost,
    OfCovariates,
    OfDetector,
    OfEps,
    OfEvasion,
    OfFalseAlarms,
    OfFamily,
    OfMeasure,
    OfNorm,
    OfThreshold,
    OfUntil,
    RunFolder,
    Workers,
    alarm_of,
    alarm_threshold,
    refuse_unused,
    sizes_of,
)
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.names import counted
from advrisk.core.traits import Norm
from advrisk.core.version import VERSION

app = typer.Typer(
    help="How risky is it to deploy this model when somebody, or the weather, perturbs its inputs?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
ledger_app = typer.Typer(help="Look after a run's ledger.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

app.command()(evasion)


@app.callback(invoke_without_command=True)
def advrisk(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """How risky is it to deploy this model when somebody, or the weather, perturbs its inputs?"""
    if version:
        print(VERSION)
        raise typer.Exit(DONE)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("advrisk-demo"),
    workers: Workers = None,
) -> None:
    """Assess four small models on real digits: a table here, and a report to open.

    Example: advrisk demo
    """
    with as_file(files("advrisk.demo")) as folder:
        code = _run_and_show(folder / "study.yaml", out, workers=workers)
    raise typer.Exit(code)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.yaml"),
) -> None:
    """Write a commented starter study.

    Example: advrisk init study.yaml
    """
    text = (files("advrisk.demo") / "starter.yaml").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StudyError(f"{path}: is there already; choose another name") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be written: {error.strerror}") from None
    print(f"{path} written. Next: advrisk run {path}")


@app.command()
def schema(
    kind: Annotated[Literal["study", "recipe"], typer.Argument(help="Which file's schema.")] = "study",
) -> None:
    """Print the JSON Schema of a study (or recipe) file, for editors.

    Example: advrisk schema > study.schema.json
    """
    from advrisk.api.schema import json_schema

    print(json.dumps(json_schema(kind), indent=2, ensure_ascii=False))


@app.command("list")
def list_parts(
    kind: Annotated[str | None, typer.Argument(help="attacks, corruptions, models, data, detectors, …")] = None,
    name: Annotated[str | None, typer.Argument(help="Only the part of this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show every registered part, or one, with its parameters and defaults.

    Example: advrisk list attacks hopskipjump
    """
    from advrisk.api.parts import describe_parts
    from advrisk.cli.tables import print_parts

    described = describe_parts(kind, name)
    print(json.dumps(described, indent=2, ensure_ascii=False)) if as_json else print_parts(described)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe file.")],
    out: Annotated[Path, typer.Option(help="Where the weights go.")] = Path("models"),
    only: Annotated[list[str] | None, typer.Option(help="Train this model only (may be repeated).")] = None,
    again: Annotated[bool, typer.Option("--again", help="Train also what is there already.")] = False,
) -> None:
    """Train the models of a recipe; those that are there already are skipped.

    One whose training was stopped goes on after its last whole epoch.

    Example: advrisk train recipe.yaml --out models
    """
    from advrisk import api

    def on_epoch(model: str, epoch: int, epochs: int, loss: float) -> None:
        print(f"{model}: epoch {epoch}/{epochs}, loss {loss:.4f}", flush=True)

    for model in api.train(recipe, out, only=only, again=again, on_epoch=on_epoch):
        accuracy = "" if model.test_accuracy is None else f", {model.test_accuracy:.1%} right on test samples"
        done = "there already" if model.skipped else f"trained in {model.train_s:.1f} s"
        print(f"{model.path}: {done} on {model.train_samples} samples{accuracy}")


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[Path | None, typer.Option(help="The run's folder (default: runs/<name of the study>).")] = None,
    workers: Workers = None,
    device: Device = None,
    max_hours: Annotated[float | None, typer.Option(min=0.0, help="Begin no cell after so many hours.")] = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Run cells with error rows again.")] = False,
    publish_s: Annotated[float, typer.Option(min=0.0, help="Make results durable every so many seconds.")] = 3.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Carry out a study; what an earlier run finished is not done again.

    Example: advrisk run study.yaml --out runs/signs
    """
    from advrisk.api import Study

    folder = out or Path("runs") / Study.load(study).spec.name
    if dry_run:
        from advrisk.cli.tables import print_dry_run

        plan = Study.load(study).dry_run(folder, workers=workers, device=device, retry_errors=retry_errors)
        print(json.dumps(vars(plan), indent=2)) if as_json else print_dry_run(plan)
        return
    options = {"workers": workers, "device": device, "max_hours": max_hours, "retry_errors": retry_errors}
    options["publish_every_s"] = publish_s
    raise typer.Exit(_run_and_show(study, folder, as_json=as_json, **options))


@app.command()
def status(folder: RunFolder, as_json: AsJson = False) -> None:
    """Say how far a run is, and what came of it.

    Example: advrisk status runs/signs
    """
    from advrisk.api import Run
    from advrisk.cli.tables import print_status

    run = Run.open(folder)
    found, flagged = run.status(), run.flags()
    if as_json:
        facts = {**vars(found), "flagged": flagged, "complete": found.complete}
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print_status(found, flagged, folder)


@app.command()
def show(
    folder: RunFolder,
    what: Annotated[
        Literal[
            "damage", "convergence", "attacks", "detection", "indicators", "survival", "failures", "arms", "models"
        ],
        typer.Argument(help="What to show."),
    ] = "damage",
    norm: OfNorm = None,
    arm: OfArms = None,
    eps: OfEps = None,
    evasion: OfEvasion = None,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    cost: OfCost = None,
    answers: OfAnswers = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Detection, indicators, survival, failures: this model only; repeat.")
    ] = None,
    groups: Annotated[bool, typer.Option("--groups", help="Detection: every norm, size and objective.")] = False,
    tpr: Annotated[
        float | None,
        typer.Option("--tpr", help="Detection: the share of attacks to detect (default: the study's, 0.95)."),
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Indicators, failures: this scenario only; repeat for more.")
    ] = None,
    scenarios: Annotated[
        Path | None, typer.Option(help="Indicators: a YAML file with other scenarios than the study's.")
    ] = None,
    loss: Annotated[list[str] | None, typer.Option(help="Indicators, failures: this loss; repeat for more.")] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", help="Indicators: another weight, as in wet.rain=0.9; repeat for more."),
    ] = None,
    out_csv: Annotated[
        Path | None, typer.Option("--csv", help="Detection, indicators, survival: write every entry to this file.")
    ] = None,
    measure: OfMeasure = None,
    covariate: OfCovariates = None,
    family: OfFamily = None,
    until: OfUntil = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=1, help="Failures: so many samples of each branch (default: 12).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Failures: write the inputs as one picture, a .png file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run found.

    Example: advrisk show runs/signs convergence --evasion evasion.json
    """
    from advrisk.api import Run
    from advrisk.cli.detection import show_detection
    from advrisk.cli.failures import show_failures
    from advrisk.cli.findings import show_finding
    from advrisk.cli.indicators import show_indicators
    from advrisk.cli.survival import show_survival

    opened = Run.open(folder)
    given: dict[str, object | None] = {"--norm": norm, "--arm": arm, "--eps": eps, "--evasion": evasion, "--cost": cost}
    given |= {"--detector": detector, "--threshold": threshold, "--false-alarms": false_alarms, "--answers": answers}
    given |= {"--model": model, "--groups": groups or None, "--tpr": tpr, "--csv": out_csv, "--scenario": scenario}
    given |= {"--scenarios": scenarios, "--loss": loss, "--what-if": what_if, "--samples": samples, "--out": out}
    given |= {"--measure": measure, "--covariate": covariate, "--family": family, "--until": until}
    refuse_unused(what, given)
    if what == "survival":
        laws: dict[str, Any] = {"measure": measure, "covariates": covariate, "family": family, "until": until}
        show_survival(opened, norm=norm, models=model, arms=arm, out_csv=out_csv, as_json=as_json, **laws)
        return
    if what == "failures":
        show_failures(opened, scenario, loss, model, samples, out=out, as_json=as_json)
        return
    if what == "indicators":
        show_indicators(opened, scenarios, scenario, loss, model, arm, what_if, out_csv=out_csv, as_json=as_json)
        return
    if what == "detection":
        limit = alarm_threshold(threshold, false_alarms)
        show_detection(opened, detector, model, arm, limit, tpr, groups=groups, out_csv=out_csv, as_json=as_json)
        return
    asked: dict[str, Any] = {"norm": norm, "arms": arm, "thresholds": sizes_of(eps), "evasion": evasion}
    asked |= {"detector": alarm_of(detector, threshold, false_alarms)}
    show_finding(opened, what, asked, cost=cost, answers=answers, as_json=as_json)


@app.command()
def select(
    folder: RunFolder,
    norm: OfNorm = None,
    arm: OfArms = None,
    eps: OfEps = None,
    evasion: OfEvasion = None,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    cost: OfCost = None,
    answers: OfAnswers = None,
    as_json: AsJson = False,
) -> None:
    """Name the model to ship, or say that the evidence does not decide (exit code 4).

    Example: advrisk select runs/signs --evasion evasion.json --cost 25000
    """
    from advrisk.api import Run
    from advrisk.cli.damage import damage_json, print_selection

    alarm = alarm_of(detector, threshold, false_alarms)
    found = Run.open(folder).damage(
        norm=norm, arms=arm, thresholds=sizes_of(eps), evasion=evasion, detector=alarm, cost=cost, answers=answers
    )
    print(damage_json(found)) if as_json else print_selection(found)
    raise typer.Exit(DONE if found.decided or not found.pairs else UNDECIDED)


@app.command()
def report(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="The file to write (default: report.html in the run).")] = None,
) -> None:
    """Write one self-contained HTML file.

    Example: advrisk report runs/signs --out signs.html
    """
    from advrisk.api import Run

    print(f"{Run.open(folder).report(out)} written; open it in a browser")


app.command()(label)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="A .csv or .parquet file of outcomes, or of detector scores.")],
    folder: RunFolder,
    norm: Annotated[Norm | None, typer.Option(help="The norm of a column called `distance`.")] = None,
) -> None:
    """Turn somebody else's outcomes into a ledger, or add a detector's scores to one.

    Outcomes need the columns model, sample, and distance (with --norm) or d_l0, d_l1, d_l2, d_linf. Scores need
    detector, model, arm (`clean` for clean inputs), sample and score, and a run that holds these.

    Example: advrisk import distances.csv runs/theirs --norm linf
    """
    from advrisk.ledger.importing import import_outcomes
    from advrisk.ledger.score_file import holds_scores, import_scores, incomplete

    if holds_scores(source):
        if norm is not None:
            raise StudyError(f"--norm {norm} is for a column of distances, and {source} holds scores; leave it out")
        found = import_scores(source, folder)
        left_out = f", {found.n_left_out} of inputs that did not succeed left out" if found.n_left_out else ""
        names = " and ".join(found.detectors)
        print(f"{found.n_scores} scores of {names} imported{left_out}. Next: advrisk show {folder} detection")
        for sentence in incomplete(found, folder):
            print(sentence, file=sys.stderr)
        return
    print(f"{import_outcomes(source, folder, norm=norm)} rows imported. Next: advrisk show {folder}")


@app.command()
def export(
    folder: RunFolder,
    target: Annotated[
        Path, typer.Argument(help="A .csv or .parquet file for a table, .npz for inputs, .nc for the risk tensor.")
    ],
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
) -> None:
    """Write a table, the adversarial inputs that were kept, or what every answer costs (risk) to a file.

    Example: advrisk export runs/signs adversarial.npz --model plain
    """
    from advrisk.cli.indicators import TENSOR, export_tensor
    from advrisk.ledger import Ledger
    from advrisk.ledger.exporting import export_inputs, export_table

    ledger = Ledger.open(folder)
    if to_score:
        from advrisk.ledger.to_score import export_to_score

        if target.suffix != ".npz":
            raise StudyError(f"{target}: --to-score writes inputs; let the name end in .npz")
        n = export_to_score(ledger.path.parent, ledger, target, model=model, arm=arm)
        print(f"{n} inputs to score written to {target}. Next: advrisk import SCORES.csv {folder}")
    elif target.suffix == ".nc" or table == TENSOR:
        export_tensor(folder, target, model)
    elif target.suffix == ".npz":
        print(f"{export_inputs(ledger.path.parent, ledger, target, model=model, arm=arm)} inputs written to {target}")
    else:
        print(f"{export_table(ledger, table, target)} rows written to {target}")


@ledger_app.command("sql")
def ledger_sql(
    folder: RunFolder,
    query: Annotated[str, typer.Argument(help="SQL over outcomes, outputs, cells, arms, models, samples.")],
    as_json: AsJson = False,
) -> None:
    """Ask the ledger anything, in SQL.

    Example: advrisk ledger sql runs/signs "SELECT model, outcome, count(*) AS n FROM outcomes GROUP BY ALL"
    """
    from advrisk.cli.tables import print_rows
    from advrisk.ledger import Ledger

    rows = Ledger.open(folder).query(query).to_pylist()
    print(json.dumps(rows, indent=2, default=str, ensure_ascii=False)) if as_json else print_rows(rows)


@ledger_app.command("delete-inputs")
def ledger_delete_inputs(
    folder: RunFolder,
    model: Annotated[str | None, typer.Option(help="Delete the inputs kept against this model.")] = None,
    sample: Annotated[str | None, typer.Option(help="Delete every stored input of this sample.")] = None,
) -> None:
    """Delete stored inputs of a model or a sample; the outcome rows stay.

    Example: advrisk ledger delete-inputs runs/signs --sample signs/000017
    """
    from advrisk.ledger import Ledger
    from advrisk.ledger.exporting import delete_inputs

    ledger = Ledger.open(folder)
    print(f"{delete_inputs(ledger.path.parent, ledger, model=model, sample=sample)} files changed")


def _run_and_show(study_file: Path, folder: Path, *, as_json: bool = False, **options: Any) -> int:
    """Run, print the table, write the report; returns the exit code."""
    from advrisk.api import Study
    from advrisk.cli.damage import damage_json, print_damage
    from advrisk.cli.indicators import print_scenarios
    from advrisk.cli.progress import ProgressLine, interrupts_end_the_run

    study = Study.load(study_file)
    # What a user's factory prints is no part of our output.
    with interrupts_end_the_run(folder), redirect_stdout(sys.stderr), ProgressLine(quiet=as_json) as line:
        done = study.run(folder, on_progress=line.update, **options)
    state = done.status()
    if not state.complete:
        so_far = f"{state.n_cells} of {state.n_cells_expected} cells are done"
        print(f"{so_far}. Run the same command again to go on.", file=sys.stderr)
        return DONE
    page = done.report()
    try:
        found = done.damage()
        print(damage_json(found)) if as_json else print_damage(found)
    except RiskError as error:  # the run is done all the same: corruptions alone, say
        print(f"no damage is reported: {error}", file=sys.stderr)
    if study.spec.scenarios and not as_json:
        print_scenarios(done)
    if not as_json:
        print(f"\nreport: {page}")
        if study.spec.detectors:
            print(f"detectors: advrisk show {folder} detection")
        if study.spec.scenarios:
            print(f"scenarios: advrisk show {folder} indicators")
    for flag, n_cells in state.flags.items():
        print(f"{counted(n_cells, 'cell')} flagged {flag}: see `advrisk status {folder}`", file=sys.stderr)
    n_failed = sum(state.outcomes.get(name, 0) for name in ("error", "timeout"))
    if n_failed:
        print(f"{n_failed} rows ended in an error or timeout: advrisk status {folder}", file=sys.stderr)
    n_unmeasured = 0 if line.last is None else line.last.n_unmeasured
    if n_unmeasured:
        why = line.last.trouble if line.last and line.last.trouble else "`--retry-errors` tries again, and says why"
        print(f"{counted(n_unmeasured, 'measure')} gave no number: {why}", file=sys.stderr)
    return ERROR_ROWS if n_failed or n_unmeasured else DONE
