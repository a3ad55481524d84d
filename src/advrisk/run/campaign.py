"""The main path of a run, top-down: plan, skip finished cells, run the others, append; then measure and score.

`run_study` -> `run_cells` -> `Dispatcher.dispatch` -> `Executor.submit` -> `run_cell` -> `perturb`, `judge`,
`judged_result`. Every executor is handed `run_cell`, and runs it in this process or elsewhere.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import nn

from advrisk.core.files import remove_unfinished
from advrisk.engine import OutOfTimeError
from advrisk.ledger import Ledger, SegmentWriter, Storage, locked
from advrisk.run.cell import run_cell
from advrisk.run.certifying import certify
from advrisk.run.detectors.fitting import fit_detectors
from advrisk.run.detectors.ready import Scores
from advrisk.run.detectors.scoring import score_inputs
from advrisk.run.dispatch import Dispatcher
from advrisk.run.executors.choice import choose_executor
from advrisk.run.finished import Unfinished, unfinished_cells
from advrisk.run.identity.resumed import refuse_changed_models
from advrisk.run.interim import InterimAnalysis, Rounds
from advrisk.run.measuring import take_measures
from advrisk.run.options import DEFAULTS, Options
from advrisk.run.planning import plan_study
from advrisk.run.preparation import prepare
from advrisk.run.progress import Progress
from advrisk.run.recording import record_question, refuse_another_study
from advrisk.run.scheduling import expected_work
from advrisk.run.workbench import Workbench
from advrisk.study import StudySpec


def run_study(
    study: StudySpec,
    place: Path | Storage,
    *,
    options: Options = DEFAULTS,
    modules: Mapping[str, nn.Module] | None = None,
    detectors: Mapping[str, Scores] | None = None,
    interim: InterimAnalysis | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Run every cell of a study that the ledger at `place` lacks; then take measures and score kept inputs.

    `detectors` (name -> any object with `score(x)`) score beside those that the study names. `interim` analyses
    whether the targets are met, where there are any.
    """
    folder = Storage.of(place).folder
    ready = prepare(study, folder, options, modules, detectors)  # a study that is refused leaves nothing behind
    bench = ready.bench
    with ready.trial, locked(folder):
        ledger = _open_ledger(study, place)
        plan = plan_study(ready.outline, ledger, bench)
        doubts = (*ready.doubts, *refuse_changed_models(bench, plan, ledger))
        record_question(study, ledger, plan, bench)
        missing = unfinished_cells(plan, ledger, retry_errors=options.retry_errors)
        n_samples = sum(n for _, n in missing.by_kind)
        progress = Progress(len(missing), plan.n_cells - len(missing), n_samples=n_samples, doubts=doubts)
        on_progress(progress)
        deadline = time.monotonic() + (float("inf") if options.max_s is None else options.max_s)
        with suppress(OutOfTimeError):  # then no cell begins either
            fit_detectors(bench, ready.detectors, progress, deadline=deadline, on_progress=on_progress)
        with (
            choose_executor(run_cell, bench, plan, options, ready.trial) as executor,
            SegmentWriter(ledger, every_s=options.publish_every_s) as writer,
        ):
            work, most = expected_work(bench), options.max_passes
            limits: dict[str, Any] = {"work": work, "max_passes": most, "expected": missing.by_kind}
            dispatcher = Dispatcher(executor, writer, deadline, on_progress, progress, **limits)
            run_cells(missing, dispatcher, bench, options, interim)
            certify(bench, plan, ledger, dispatcher, retry_errors=options.retry_errors)
        progress = take_measures(
            ledger, bench, plan, dispatcher.progress, options, deadline=deadline, on_progress=on_progress
        )
        return score_inputs(ledger, bench, plan, progress, options, deadline=deadline, on_progress=on_progress)


def run_cells(
    missing: Unfinished, dispatcher: Dispatcher, bench: Workbench, options: Options, interim: InterimAnalysis | None
) -> None:
    """Run the missing cells: all of them, or round by round until the targets are met or the passes are spent."""
    asked = options.targets, interim, options.max_passes
    rounds = Rounds(bench, missing.plan, missing.finished, *asked, retry_errors=options.retry_errors)
    if options.targets or options.max_passes is not None:
        rounds.run_rounds(dispatcher)
    else:
        rounds.run_all(missing, dispatcher)


def _open_ledger(study: StudySpec, place: Path | Storage) -> Ledger:
    """The ledger of a folder that belongs to this study, without what a killed run left behind."""
    folder = Storage.of(place).folder
    refuse_another_study(study, folder)
    remove_unfinished(folder)
    return Ledger.open(place, create=True)
