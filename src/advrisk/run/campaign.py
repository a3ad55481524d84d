"""The main path: plan, let detectors learn, skip finished cells, perturb, judge, append; then measure and score.

Searches for the worst settings of attacks, and what is certified of them, are cells like others: `run.certifying`.
"""

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from advrisk.core.errors import RunError
from advrisk.core.registry import Part
from advrisk.engine import OutOfTimeError
from advrisk.ledger import Ledger, SegmentWriter, locked
from advrisk.parts import REGISTRIES
from advrisk.plan import ConfiguredDetector, Plan, names_of
from advrisk.run.bench import Workbench
from advrisk.run.certifying import certify
from advrisk.run.crew import Crew, unfinished_cells
from advrisk.run.detectors import HandedOver, Scores, handed_over, ready_detector, refuse_undetected, refuse_unnamed
from advrisk.run.executors import Assignment, Executor, InProcess, WorkerPool
from advrisk.run.fitting import fit_detectors
from advrisk.run.loading import OBJECT, choose_device
from advrisk.run.measuring import failed_measures, measured, unmeasured
from advrisk.run.progress import Progress
from advrisk.run.question import (
    configured_detectors,
    plan_study,
    record_question,
    refuse_another_study,
    refuse_impossible,
)
from advrisk.run.scoring import scored, unscored
from advrisk.study import StudySpec


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of these changes a row."""

    workers: int | None = None
    device: str | None = None
    max_hours: float | None = None
    retry_errors: bool = False
    publish_every_s: float = 3.0


DEFAULTS = Options()

__all__ = [
    "DEFAULTS",
    "Options",
    "Progress",
    "know_detectors",
    "run_study",
    "set_up",
    "unfinished_cells",
    "worker_count",
]


def run_study(
    study: StudySpec,
    folder: Path,
    *,
    options: Options = DEFAULTS,
    modules: Mapping[str, nn.Module] | None = None,
    detectors: Mapping[str, Scores] | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Carry out every cell of a study that the ledger in `folder` does not hold yet; then take measures, and
    score what was kept.

    `detectors` (name -> any object with `score(x)`) score beside those that the study names.
    """
    bench = set_up(study, folder, options, modules)  # a study that is refused leaves nothing behind
    known = know_detectors(bench, detectors or {})
    refuse_impossible(study, bench, known)
    with locked(folder):
        refuse_another_study(study, folder)
        ledger = Ledger.open(folder, create=True)
        plan = plan_study(study, ledger, bench, known)
        record_question(study, ledger, plan, bench)
        missing = unfinished_cells(plan, ledger, retry_errors=options.retry_errors)
        progress = Progress(n_cells=len(missing), n_skipped=plan.n_cells - len(missing))
        on_progress(progress)
        deadline = time.monotonic() + (float("inf") if options.max_hours is None else options.max_hours * 3600)
        with suppress(OutOfTimeError):  # then nothing else is begun either
            fit_detectors(
                bench,
                known,
                deadline=deadline,
                on_progress=lambda of, share: on_progress(progress.while_learning(of, share)),
            )
        with (
            _executor(bench, plan, options) as executor,
            SegmentWriter(ledger, every_s=options.publish_every_s) as writer,
        ):
            crew = Crew(executor, writer, deadline, on_progress, progress)
            crew.carry_out(missing)
            certify(bench, plan, ledger, crew, retry_errors=options.retry_errors)
            progress = crew.progress
        for now in _measuring(progress, bench, plan, options, deadline=deadline):
            progress = now
            on_progress(progress)
        for n_scored, n_to_score in _scoring(bench, plan, options, deadline=deadline):
            progress = replace(progress, n_scored=n_scored, n_to_score=n_to_score)
            on_progress(progress)
    return progress


def know_detectors(bench: Workbench, objects: Mapping[str, Scores]) -> list[ConfiguredDetector]:
    """The detectors of a study and those handed over (name -> object): all are put on the workbench."""
    given = handed_over(objects, bench.material.data.x, next(iter(bench.material.models.values())))
    configured = configured_detectors(bench)
    bench.detectors |= {one.id: ready_detector(one, bench.study, bench.registries, bench.folder) for one in configured}
    bench.detectors |= {one.id: detector for one, detector in given}
    for one, _ in given:
        if one.readable in names_of(configured):
            raise RunError(f"the study has a detector called {one.readable!r}; hand the object over by another name")
    known = [*configured, *(one for one, _ in given)]
    refuse_unnamed(bench.study, known)
    refuse_undetected(bench.study, known, bench.folder)
    return known


def _measuring(
    progress: Progress, bench: Workbench, plan: Plan, options: Options, *, deadline: float
) -> Iterator[Progress]:
    """Take the study's measures where they were not; nothing after the deadline. What fails is noted, and no more."""
    if not bench.study.measures:
        return
    ledger = Ledger.open(bench.folder)  # with what was published meanwhile
    gaps = unmeasured(ledger, bench, plan, retry_errors=options.retry_errors)
    n_failed = 0 if options.retry_errors else failed_measures(ledger, bench, plan)
    progress = replace(progress, n_to_measure=sum(len(gap.samples) for gap in gaps), n_unmeasured=n_failed)
    yield progress
    with SegmentWriter(ledger, every_s=options.publish_every_s) as writer:
        for gap in gaps:
            for table, trouble in measured(gap, bench, deadline=deadline):
                writer.add({"measures": table})
                progress = progress.after_measure(trouble)
                yield progress


def _scoring(bench: Workbench, plan: Plan, options: Options, *, deadline: float) -> Iterator[tuple[int, int]]:
    """Let detectors score what they have not: how many inputs so far, and in all; nothing after the deadline."""
    if not bench.detectors:
        return
    ledger = Ledger.open(bench.folder)  # with what was published meanwhile
    batches = unscored(ledger, bench)
    cells = {cell.id: cell for cell in plan.cells()}
    n_scored, n_to_score = 0, sum(len(batch.samples) for batch in batches)
    yield n_scored, n_to_score
    with SegmentWriter(ledger, every_s=options.publish_every_s) as writer:
        for batch in batches:
            if time.monotonic() > deadline:
                return
            writer.add({"scores": scored(batch, bench, cells)})
            n_scored += len(batch.samples)
            yield n_scored, n_to_score


def set_up(
    study: StudySpec, folder: Path, options: Options, modules: Mapping[str, nn.Module] | None = None
) -> Workbench:
    """Load everything a study names onto a workbench."""
    device = choose_device(options.device or study.device)
    run = uuid.uuid4().hex[:12]
    return Workbench.set_up(study, REGISTRIES, folder=folder, run=run, device=device, modules=modules)


def worker_count(bench: Workbench, plan: Plan, options: Options) -> int:
    """One worker per core, but one in all on an accelerator; 0: the work is done in this process.

    A model, a detector or a part that exists in this process only cannot be had elsewhere.
    """
    given = any(spec.source == OBJECT for spec in bench.study.models.values())
    given |= any(isinstance(bench.detectors[name], HandedOver) for name in plan.watched)
    if given or "__main__" in _homes(plan, bench):
        return 0
    on_accelerator = any(model.device != "cpu" for model in bench.material.models.values())
    return options.workers or (1 if on_accelerator else _n_cores())


def _n_cores() -> int:
    """The cores this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _homes(plan: Plan, bench: Workbench) -> tuple[str, ...]:
    """The modules in which the parts of a study are defined: importing them registers the parts."""
    registries = bench.registries
    arms = [*(arm for _, arm in plan.attempts), *(search.arm for search in plan.searches)]
    parts: list[Part[Any]] = [registries.attacks.get(arm.family) for arm in arms if arm.kind == "attack"]
    parts += [registries.corruptions.get(arm.family) for arm in arms if arm.kind == "corruption"]
    parts += [registries.objectives.get(arm.objective) for arm in arms if arm.objective]
    parts += [registries.detectors.get(one.name) for one in configured_detectors(bench) if one.id in plan.watched]
    parts += [registries.defences.get(spec.name) for spec in bench.study.defences.values()]
    parts += [registries.models.get(spec.source) for spec in bench.study.models.values() if spec.source != OBJECT]
    return tuple(sorted({part.function.__module__ for part in parts}))


def _executor(bench: Workbench, plan: Plan, options: Options) -> Executor:
    workers = worker_count(bench, plan, options)
    if workers == 0:
        return InProcess(bench)
    material = bench.material
    rows = [material.rows[name] for shard in plan.all_shards for name in shard.samples]
    assignment = Assignment(
        study=bench.study,
        folder=bench.folder,
        run=bench.run,
        device=next(iter(material.models.values())).device,
        data=material.data.subset(rows),
        digests={name: model.digest for name, model in material.models.items()},
        python_path=tuple(sys.path),
        modules=_homes(plan, bench),
        detectors=tuple(configured_detectors(bench)),
    )
    return WorkerPool(assignment, workers=workers)
