"""The main path: plan, let detectors learn, skip finished cells, perturb, judge, append; then measure and score.

Searches for the worst settings of attacks, and what is certified of them, are cells like others: `run.certifying`.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from advrisk.core.errors import RunError
from advrisk.core.files import remove_unfinished
from advrisk.engine import OutOfTimeError
from advrisk.ledger import Ledger, SegmentWriter, Storage, locked
from advrisk.parts import REGISTRIES
from advrisk.plan import ConfiguredDetector, Plan, names_of
from advrisk.run.accuracy import doubts_about
from advrisk.run.bench import Workbench
from advrisk.run.certifying import certify
from advrisk.run.crew import Crew, Unfinished, unfinished_cells
from advrisk.run.detectors import Scores, handed_over, ready_detector, refuse_undetected, refuse_unnamed
from advrisk.run.executors import Executor, InProcess, WorkerPool
from advrisk.run.fitting import fit_detectors
from advrisk.run.longest import expected_work
from advrisk.run.measuring import failed_measures, measured, unmeasured
from advrisk.run.on_ray import OnRay
from advrisk.run.places import (
    DEFAULTS,
    Options,
    assignment_for,
    far_device,
    n_cores,
    own_device,
    refuse_only_here,
    refuse_place,
    worker_count,
)
from advrisk.run.progress import Progress
from advrisk.run.question import (
    configured_detectors,
    plan_study,
    record_question,
    refuse_another_study,
    refuse_impossible,
)
from advrisk.run.rounds import Looker, Rounds
from advrisk.run.scoring import scored, unscored
from advrisk.study import StudySpec

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
    place: Path | Storage,
    *,
    options: Options = DEFAULTS,
    modules: Mapping[str, nn.Module] | None = None,
    detectors: Mapping[str, Scores] | None = None,
    look: Looker | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Carry out every cell of a study that the ledger at `place` does not hold yet; then take measures, and
    score what was kept.

    `detectors` (name -> any object with `score(x)`) score beside those that the study names. `look` says whether
    targets are met, where there are any.
    """
    refuse_place(study, options)
    folder = Storage.of(place).folder
    bench = set_up(study, folder, options, modules)  # a study that is refused leaves nothing behind
    known = know_detectors(bench, detectors or {})
    refuse_only_here(bench, refuse_impossible(study, bench, known, options.targets), options)
    doubts = doubts_about(bench)
    with locked(folder):
        refuse_another_study(study, folder)
        remove_unfinished(folder)  # of a run that was killed
        ledger = Ledger.open(place, create=True)
        plan = plan_study(study, ledger, bench, known)
        record_question(study, ledger, plan, bench)
        missing = unfinished_cells(plan, ledger, retry_errors=options.retry_errors)
        progress = Progress(n_cells=len(missing), n_skipped=plan.n_cells - len(missing), doubts=doubts)
        on_progress(progress)
        job = _Job(bench, plan, options, look, _deadline(options), on_progress)
        job.learn(known, progress)
        progress = job.carry_out(ledger, missing, progress)
        for now in job.afterwards(ledger, progress):
            progress = now
            on_progress(progress)
    return progress


def _deadline(options: Options) -> float:
    """On time.monotonic's clock."""
    return time.monotonic() + (float("inf") if options.max_s is None else options.max_s)


@dataclass(frozen=True)
class _Job:
    """What is to be done in a folder that is ours while it lasts."""

    bench: Workbench
    plan: Plan
    options: Options
    look: Looker | None
    deadline: float
    on_progress: Callable[[Progress], None]

    def learn(self, known: Sequence[ConfiguredDetector], progress: Progress) -> None:
        """Let detectors learn before they are attacked."""

        def told(of: str, share: float) -> None:
            self.on_progress(progress.while_learning(of, share))

        with suppress(OutOfTimeError):  # then nothing else is begun either
            fit_detectors(self.bench, known, deadline=self.deadline, on_progress=told)

    def carry_out(self, ledger: Ledger, missing: Unfinished, progress: Progress) -> Progress:
        """Carry out cells: those on samples to evaluate, then those of searches and certificates."""
        bench, plan, options = self.bench, self.plan, self.options
        with (
            _executor(bench, plan, options) as executor,
            SegmentWriter(ledger, every_s=options.publish_every_s) as writer,
        ):
            crew = Crew(
                executor,
                writer,
                self.deadline,
                self.on_progress,
                progress,
                max_passes=options.max_passes,
                work=expected_work(bench),
            )
            self._evaluate(missing, crew)
            certify(bench, plan, ledger, crew, retry_errors=options.retry_errors)
            return crew.progress

    def _evaluate(self, missing: Unfinished, crew: Crew) -> None:
        """Carry out the cells on samples to evaluate: all of them, or as many as are needed or may be."""
        options = self.options
        asked = options.targets, self.look, options.max_passes
        rounds = Rounds(self.bench, self.plan, missing.finished, *asked, options.retry_errors)
        if options.targets or options.max_passes is not None:
            rounds.carry_out(crew)
        else:
            rounds.carry_out_all(missing, crew)

    def afterwards(self, ledger: Ledger, progress: Progress) -> Iterator[Progress]:
        """Take measures, and score what was kept."""
        for now in _measuring(ledger, progress, self.bench, self.plan, self.options, deadline=self.deadline):
            progress = now
            yield progress
        for n_scored, n_to_score in _scoring(ledger, self.bench, self.plan, self.options, deadline=self.deadline):
            progress = replace(progress, n_scored=n_scored, n_to_score=n_to_score)
            yield progress


def know_detectors(bench: Workbench, objects: Mapping[str, Scores]) -> list[ConfiguredDetector]:
    """The detectors of a study and those handed over (name -> object): all are put on the workbench."""
    given = handed_over(objects, bench.material.data.x, next(iter(bench.material.models.values())))
    configured = configured_detectors(bench)
    bench.detectors |= {one.id: ready_detector(one, bench.study, bench.registries, bench.folder) for one in configured}
    bench.detectors |= {one.id: detector for one, detector in given}
    bench.detector_names |= {one.id: one.called for one in configured if one.called}
    for one, _ in given:
        if one.readable in names_of(configured):
            raise RunError(f"the study has a detector called {one.readable!r}; hand the object over by another name")
    known = [*configured, *(one for one, _ in given)]
    refuse_unnamed(bench.study, known)
    refuse_undetected(bench.study, known, bench.folder)
    return known


def _measuring(
    ledger: Ledger, progress: Progress, bench: Workbench, plan: Plan, options: Options, *, deadline: float
) -> Iterator[Progress]:
    """Take the study's measures where they were not; nothing after the deadline. What fails is noted, and no more."""
    if not bench.study.measures:
        return
    ledger = ledger.reopened()  # with what was published meanwhile
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


def _scoring(
    ledger: Ledger, bench: Workbench, plan: Plan, options: Options, *, deadline: float
) -> Iterator[tuple[int, int]]:
    """Let detectors score what they have not: how many inputs so far, and in all; nothing after the deadline."""
    if not bench.detectors:
        return
    ledger = ledger.reopened()  # with what was published meanwhile
    batches = unscored(ledger, bench)
    n_scored, n_to_score = 0, sum(len(batch.samples) for batch in batches)
    yield n_scored, n_to_score
    with SegmentWriter(ledger, every_s=options.publish_every_s) as writer:
        for batch in batches:
            if time.monotonic() > deadline:
                return
            writer.add({"scores": scored(batch, bench, plan)})
            n_scored += len(batch.samples)
            yield n_scored, n_to_score


def set_up(
    study: StudySpec, folder: Path, options: Options, modules: Mapping[str, nn.Module] | None = None
) -> Workbench:
    """Load everything a study names onto a workbench."""
    device = own_device(study, options)
    run = uuid.uuid4().hex[:12]
    return Workbench.set_up(study, REGISTRIES, folder=folder, run=run, device=device, modules=modules)


def _executor(bench: Workbench, plan: Plan, options: Options) -> Executor:
    if options.on == "ray":
        assignment = assignment_for(bench, plan, device=far_device(bench.study, options))
        return OnRay(assignment, bench, address=options.address, workers=options.workers, cores=n_cores())
    workers = worker_count(bench, plan, options)
    if workers == 0:
        return InProcess(bench)
    device = next(iter(bench.material.models.values())).device
    return WorkerPool(assignment_for(bench, plan, device=device), workers=workers)
