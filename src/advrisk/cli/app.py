"""The verbs. Each reads arguments, calls the library, and prints."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

from advrisk.cli import DONE, complain
from advrisk.cli.certify import certify, verify
from advrisk.cli.ended import time_limit
from advrisk.cli.evasion import evasion
from advrisk.cli.evidence import evidence
from advrisk.cli.gating import compare, gate
from advrisk.cli.groups import HELP, SectionedGroup
from advrisk.cli.label import label
from advrisk.cli.ledgers import export, import_, ledger_app
from advrisk.cli.options import (
    Address,
    AsJson,
    Device,
    MaxMinutes,
    MaxPasses,
    MaxTime,
    OfTarget,
    On,
    RunFolder,
    Workers,
)
from advrisk.cli.reporting import report
from advrisk.cli.running import run_and_show
from advrisk.cli.selecting import select
from advrisk.cli.show.app import show_app
from advrisk.cli.verbosity import App, is_quiet
from advrisk.core.errors import StudyError
from advrisk.core.names import counted, visible_line
from advrisk.core.numbers import percent_text
from advrisk.core.version import VERSION


class Verbs(SectionedGroup):
    """The verbs as `advrisk --help` groups them."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Start": ("demo", "init", "list", "schema", "train"),
        "Run": ("run", "status", "label"),
        "Answer": ("show", "select", "gate", "compare", "evasion"),
        "Share": ("report", "certify", "evidence", "verify", "export"),
        "Maintain": ("import", "ledger"),
    }


app = App(
    cls=Verbs,
    no_args_is_help=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(show_app, name="show")
app.add_typer(ledger_app, name="ledger")
for verb in (select, gate, compare, evasion, report, label, certify, evidence, verify, export):
    app.command()(verb)
app.command("import")(import_)


@app.callback(invoke_without_command=True)
def advrisk(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """How risky is it to deploy this model when somebody, or the weather, perturbs its inputs?

    `advrisk VERB -h` explains a verb and its options.
    """
    if version:
        print(VERSION)
        raise typer.Exit(DONE)


@app.command()
def demo(
    out: Annotated[str, typer.Option(help="Where the run goes.")] = "advrisk-demo",
    workers: Workers = None,
) -> None:
    """Assess four small models on real digits, and write a report.

    Example: advrisk demo
    """
    from advrisk.study import load_study

    with as_file(files("advrisk.demo")) as folder:
        code = run_and_show(load_study(folder / "study.yaml"), folder / "study.yaml", out, workers=workers)
    raise typer.Exit(code)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.yaml"),
    model: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="Your torch model: a class or function without arguments.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Your samples: an .npz file with x and y.")] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its weights: .safetensors, or a state dict.")
    ] = None,
) -> None:
    """Write a commented study: of your model and data, or of the demo's.

    With --model and --data, both are loaded: what they show is filled in, and what only you know is marked with `?`.
    The module is searched for beside the study.

    Example: advrisk init --model mynets:Net --data mine.npz --weights net.safetensors
    """
    if (model is None) != (data is None) or (weights is not None and model is None):
        raise StudyError("--model and --data go together, and --weights belongs to them; give both, or neither")
    if path.exists():
        raise StudyError(f"{path}: is there already; choose another name")
    if model is not None and data is not None:
        from advrisk.api.starting import starter_study

        with redirect_stdout(sys.stderr):  # what a user's factory prints is no part of our output
            starter = starter_study(path, model=model, data=data, weights=weights)
        _write_new(path, starter.text)
        print(starter.summary)
        print(f"{path} written; {counted(starter.n_unsure, 'line')} marked `# ?` need your answer.")
        if starter.doubt:
            complain(starter.doubt)
    else:
        _write_new(path, (files("advrisk.demo") / "starter.yaml").read_text(encoding="utf-8"))
        print(f"{path} written.")
    print(f"Next: advrisk run {path}")


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StudyError(f"{path}: is there already; choose another name") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be written: {error.strerror}") from None


@app.command()
def schema(
    kind: Annotated[
        Literal["study", "recipe", "certificate", "report"], typer.Argument(help="Which file's schema.")
    ] = "study",
) -> None:
    """Print the JSON Schema of a study, for editors and programs.

    Also of a recipe, a certificate or a report as JSON.

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
    """List registered parts with their parameters and defaults.

    All of them, those of one kind, or one by name.

    Example: advrisk list attacks hopskipjump
    """
    from advrisk.api.parts import describe_parts
    from advrisk.cli.parts import print_parts

    described = describe_parts(kind, name)
    print(json.dumps(described, indent=2, ensure_ascii=False)) if as_json else print_parts(described)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe file.")],
    out: Annotated[str, typer.Option(help="Where the weights go.")] = "models",
    only: Annotated[list[str] | None, typer.Option(help="Train this model only (may be repeated).")] = None,
    again: Annotated[bool, typer.Option("--again", help="Train also what is there already.")] = False,
) -> None:
    """Train the models of a recipe, except those already trained.

    A training that was stopped resumes after its last whole epoch.

    Example: advrisk train recipe.yaml --out models
    """
    from advrisk import api

    def on_epoch(model: str, epoch: int, epochs: int, loss: float) -> None:
        if not is_quiet():
            print(f"{visible_line(model)}: epoch {epoch}/{epochs}, loss {loss:.4f}", flush=True)

    for model in api.train(recipe, out, only=only, again=again, on_epoch=on_epoch):
        accuracy = (
            "" if model.test_accuracy is None else f", {percent_text(model.test_accuracy, 1)} right on test samples"
        )
        busy = "" if model.train_process_s is None else f" ({model.train_process_s:.1f} processor seconds)"
        done = "there already" if model.skipped else f"trained in {model.train_s:.1f} s{busy}"
        print(f"{model.path}: {done} on {model.train_samples} samples{accuracy}")


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[str | None, typer.Option(help="The run's folder (default: runs/<name of the study>).")] = None,
    workers: Workers = None,
    device: Device = None,
    max_time: MaxTime = None,
    max_minutes: MaxMinutes = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Run cells with error rows again.")] = False,
    publish_s: Annotated[float, typer.Option(min=0.0, help="Make results durable every so many seconds.")] = 3.0,
    on: On = "local",
    address: Address = None,
    target: OfTarget = None,
    max_passes: MaxPasses = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a study, or resume it; finished cells are not repeated.

    Exit code 0: done; 3: done with error rows; 4: a limit stopped it, or a target is not met; 130: interrupted.

    Example: advrisk run study.yaml --out runs/signs --max-time 90m
    """
    from advrisk.study import load_study
    from advrisk.study.vocabulary import unknown_names

    spec = load_study(study, names=unknown_names)  # a mistake is reported before torch is imported
    folder = out or str(Path("runs") / spec.name)
    if dry_run:
        from advrisk.api import Study
        from advrisk.render.terminal import print_sections
        from advrisk.run.dry_sections import dry_run_sections

        given: dict[str, Any] = {"workers": workers, "device": device, "retry_errors": retry_errors, "on": on}
        given |= {"address": address, "target": target or (), "max_passes": max_passes}
        with redirect_stdout(sys.stderr):  # what a user's factory prints is no part of our output
            loaded = Study(spec)
            plan = loaded.dry_run(folder, **given)
        print(json.dumps(vars(plan), indent=2)) if as_json else print_sections(dry_run_sections(plan))
        for doubt in [*loaded.doubts(), *plan.doubts]:
            complain(doubt)
        return
    options: dict[str, Any] = {
        "workers": workers,
        "device": device,
        "max_time": time_limit(max_time, max_minutes),
        "retry_errors": retry_errors,
    }
    options |= {"publish_every_s": publish_s, "on": on, "address": address}
    options |= {"target": target or (), "max_passes": max_passes}
    raise typer.Exit(run_and_show(spec, study, folder, as_json=as_json, **options))


@app.command()
def status(folder: RunFolder, as_json: AsJson = False) -> None:
    """Report how far a run is, its outcomes and its flags.

    Example: advrisk status runs/signs
    """
    from advrisk.api import Run
    from advrisk.assess.status_sections import status_sections
    from advrisk.render.terminal import print_sections

    run = Run.open(folder)
    found, flagged = run.status(), run.flags()
    if as_json:
        facts = found.as_dict() | {"flagged": flagged}
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print_sections(status_sections(found, flagged, folder))
