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
from typing import Any, Literal, get_args

from torch import nn

from advrisk.core.errors import RunError
from advrisk.core.files import remove_unfinished
from advrisk.core.names import did_you_mean
from advrisk.core.registry import Part
from advrisk.engine import OutOfTimeError
from advrisk.ledger import Ledger, SegmentWriter, locked
from advrisk.parts import REGISTRIES
from advrisk.plan import ConfiguredDetector, Plan, names_of
from advrisk.run.bench import Workbench
from advrisk.run.certifying import certify
from advrisk.run.crew import Crew, Unfinished, unfinished_cells
from advrisk.run.detectors import HandedOver, Scores, handed_over, ready_detector, refuse_undetected, refuse_unnamed
from advrisk.run.executors import Assignment, Executor, InProcess, WorkerPool
from advrisk.run.fitting import fit_detectors
from advrisk.run.loading import OBJECT, choose_device
from advrisk.run.measuring import failed_measures, measured, unmeasured
from advrisk.run.on_ray import OnRay
from advrisk.run.progress import Progress
from advrisk.run.question import (
    configured_detectors,
    plan_study,
    record_question,
    refuse_another_study,
    refuse_impossible,
)
from advrisk.run.ray_cluster import refuse_without_cluster
from advrisk.run.rounds import Looker, Rounds
from advrisk.run.scoring import scored, unscored
from advrisk.study import StudySpec, Target

Place = Literal["local", "ray"]


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of these changes a row."""

    workers: int | None = None
    device: str | None = None
    max_hours: float | None = None
    retry_errors: bool = False
    publish_every_s: float = 3.0
    on: Place = "local"
    address: str | None = None  # of a Ray cluster
    max_passes: int | None = None
    targets: tuple[Target, ...] = ()  # the run rests once they are met


DEFAULTS = Options()
_ELSEWHERE = "put it into a file or a module that the study names, or leave out --on ray"

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
    look: Looker | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Carry out every cell of a study that the ledger in `folder` does not hold yet; then take measures, and
    score what was kept.

    `detectors` (name -> any object with `score(x)`) score beside those that the study names. `look` says whether
    targets are met, where there are any.
    """
    _refuse_place(study, options)
    bench = set_up(study, folder, options, modules)  # a study that is refused leaves nothing behind
    known = know_detectors(bench, detectors or {})
    refuse_impossible(study, bench, known, options.targets)
    with locked(folder):
        refuse_another_study(study, folder)
        remove_unfinished(folder)  # of a run that was killed
        ledger = Ledger.open(folder, create=True)
        plan = plan_study(study, ledger, bench, known)
        if options.on == "ray" and (found := _only_here(bench, plan)):
            raise RunError(f"{found}: it cannot be sent to a Ray cluster; {_ELSEWHERE}")
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
            crew = Crew(executor, writer, deadline, on_progress, progress, max_passes=options.max_passes)
            _evaluate(bench, plan, missing, crew, options, look)
            certify(bench, plan, ledger, crew, retry_errors=options.retry_errors)
            progress = crew.progress
        for now in _measuring(progress, bench, plan, options, deadline=deadline):
            progress = now
            on_progress(progress)
        for n_scored, n_to_score in _scoring(bench, plan, options, deadline=deadline):
            progress = replace(progress, n_scored=n_scored, n_to_score=n_to_score)
            on_progress(progress)
    return progress


def _evaluate(
    bench: Workbench, plan: Plan, missing: Unfinished, crew: Crew, options: Options, look: Looker | None
) -> None:
    """Carry out the cells on samples to evaluate: all of them, or as many as are needed or may be."""
    workers = worker_count(bench, plan, options) or 1
    rounds = Rounds(
        bench, plan, missing.finished, options.targets, look, options.max_passes, workers, options.retry_errors
    )
    if options.targets or options.max_passes is not None:
        rounds.carry_out(crew)
    else:
        rounds.carry_out_all(missing, crew)


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


def _refuse_place(study: StudySpec, options: Options) -> None:
    """Before anything is loaded: a place that is unknown, does not answer, or cannot compute on the asked device."""
    if options.on not in get_args(Place):
        raise RunError(f"on: found {options.on!r}; {did_you_mean(options.on, get_args(Place))}")
    if options.on == "ray":
        _far_device(study, options)
        refuse_without_cluster(options.address)
    elif options.address is not None:
        raise RunError(f"an address, {options.address}, is that of a Ray cluster: add --on ray, or on='ray' in Python")


def worker_count(bench: Workbench, plan: Plan, options: Options) -> int:
    """One worker per core, but one in all on an accelerator, unless `resources` says otherwise; 0: in this process.

    A model, a detector or a part that exists in this process only cannot be had elsewhere.
    """
    if _only_here(bench, plan):
        return 0
    on_accelerator = any(model.device != "cpu" for model in bench.material.models.values())
    resources = bench.study.resources
    if on_accelerator:
        room = resources.fitting(_n_cores(), 1) if resources.gpus else 1
    else:
        room = int(_n_cores() / resources.cpus + 1e-9)
    return options.workers or max(room, 1)


def _only_here(bench: Workbench, plan: Plan) -> str:
    """A model, a detector or a part that exists in this process only; nothing where there is none."""
    for name, spec in bench.study.models.items():
        if spec.source == OBJECT:
            return f"the model {name} is an object of this process"
    for name in plan.watched:
        if isinstance(bench.detectors[name], HandedOver):
            return f"the detector {name} is an object of this process"
    return "a part of the study is defined in the script that was started" if "__main__" in _homes(plan, bench) else ""


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
    if options.on == "ray":
        assignment = _assignment(bench, plan, device=_far_device(bench.study, options))
        return OnRay(assignment, bench, address=options.address, workers=options.workers, cores=_n_cores())
    workers = worker_count(bench, plan, options)
    if workers == 0:
        return InProcess(bench)
    device = next(iter(bench.material.models.values())).device
    return WorkerPool(_assignment(bench, plan, device=device), workers=workers)


def _far_device(study: StudySpec, options: Options) -> str:
    """Where workers of a cluster compute, which may have accelerators where this machine has none."""
    asked, gpus = options.device or study.device, study.resources.gpus
    if asked == "auto":
        return "cuda" if gpus else "cpu"
    if asked != "cpu" and not gpus:
        raise RunError(
            f"device {asked} on Ray: a cell is given no accelerator unless the study says how much of one it takes, as "
            "in `resources: {gpus: 0.25}`"
        )
    return asked


def _assignment(bench: Workbench, plan: Plan, *, device: str) -> Assignment:
    material = bench.material
    rows = [material.rows[name] for shard in plan.all_shards for name in shard.samples]
    return Assignment(
        study=bench.study,
        folder=bench.folder,
        run=bench.run,
        device=device,
        data=material.data.subset(rows),
        digests={name: model.digest for name, model in material.models.items()},
        python_path=tuple(sys.path),
        modules=_homes(plan, bench),
        detectors=tuple(configured_detectors(bench)),
    )
