"""The choice of an executor: this process, worker processes of this machine, or a Ray cluster.

What cannot run there is refused here.
"""

import os
import sys
from typing import Any, get_args

import torch

from advrisk.core.errors import RunError
from advrisk.core.names import did_you_mean
from advrisk.core.registry import Part
from advrisk.plan import Plan
from advrisk.run.detectors.ready import HandedOver
from advrisk.run.dispatch import Executor
from advrisk.run.executors.cluster import refuse_without_cluster
from advrisk.run.executors.local import Assignment, InProcess, RunCell, WorkerPool
from advrisk.run.executors.ray import RayExecutor
from advrisk.run.executors.trial import TrialProcess
from advrisk.run.loading import OBJECT, choose_device
from advrisk.run.options import ExecutorName, Options
from advrisk.run.planning import configured_detectors
from advrisk.run.workbench import Workbench
from advrisk.study import StudySpec

_ELSEWHERE = "put it into a file or a module that the study names, or leave out --on ray"


def choose_executor(
    run_cell: RunCell, bench: Workbench, plan: Plan, options: Options, trial: TrialProcess | None = None
) -> Executor:
    """The executor that the options ask for; it runs `run_cell` on every cell that is submitted.

    Workers of this machine take over the process of the trial.
    """
    if trial is not None and (options.on == "ray" or worker_count(bench, plan, options) == 0):
        trial.end()
    if options.on == "ray":
        assignment = assignment_for(run_cell, bench, plan, device=remote_device(bench.study, options))
        return RayExecutor(assignment, bench, address=options.address, workers=options.workers, cores=n_cores())
    workers = worker_count(bench, plan, options)
    if workers == 0:
        return InProcess(run_cell, bench)
    device = next(iter(bench.material.models.values())).device
    assignment = assignment_for(run_cell, bench, plan, device=device)
    return WorkerPool(assignment, workers=workers, started=None if trial is None else trial.worker)


def refuse_executor(study: StudySpec, options: Options) -> int:
    """Refuse, before anything is loaded, an executor that is unknown, does not answer, or lacks what a cell takes.

    Returns how many workers a cluster would have; 0 where none is asked for.
    """
    if options.on not in get_args(ExecutorName):
        raise RunError(f"on: found {options.on!r}; {did_you_mean(options.on, get_args(ExecutorName))}")
    if options.on == "ray":
        remote_device(study, options)
        here = {"CPU": float(n_cores()), "GPU": float(torch.accelerator.device_count())}
        return refuse_without_cluster(options.address, study.resources, workers=options.workers, here=here)
    if options.address is not None:
        raise RunError(f"an address, {options.address}, is that of a Ray cluster: add --on ray, or on='ray' in Python")
    return 0


def refuse_local_only(bench: Workbench, plan: Plan, options: Options) -> None:
    """What cannot be sent to a cluster."""
    if options.on == "ray" and (reason := local_only(bench, plan)):
        raise RunError(f"{reason}: it cannot be sent to a Ray cluster; {_ELSEWHERE}")


def local_device(study: StudySpec, options: Options) -> str:
    """The device of this process: on Ray it fits and scores, on whatever it has, unless all are to use the CPU."""
    asked = options.device or study.device
    return choose_device("auto" if options.on == "ray" and asked != "cpu" else asked)


def worker_count(bench: Workbench, plan: Plan, options: Options) -> int:
    """One worker per core, but one in all on an accelerator, unless `resources` says otherwise; 0: in this process.

    A model, a detector or a part that exists in this process only cannot be had elsewhere.
    """
    if local_only(bench, plan):
        return 0
    on_accelerator = any(model.device != "cpu" for model in bench.material.models.values())
    resources = bench.study.resources
    if on_accelerator:
        room = resources.fitting(n_cores(), 1) if resources.gpus else 1
    else:
        room = int(n_cores() / resources.cpus + 1e-9)
    return options.workers or max(room, 1)


def local_only(bench: Workbench, plan: Plan) -> str:
    """The model, detector or part that exists in this process only; empty where there is none."""
    for name, spec in bench.study.models.items():
        if spec.source == OBJECT:
            return f"the model {name} is an object of this process"
    for name in plan.watched:
        if isinstance(bench.detectors[name], HandedOver):
            return f"the detector {name} is an object of this process"
    return (
        "a part of the study is defined in the script that was started"
        if "__main__" in part_modules(plan, bench)
        else ""
    )


def n_cores() -> int:
    """The cores this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def part_modules(plan: Plan, bench: Workbench) -> tuple[str, ...]:
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


def remote_device(study: StudySpec, options: Options) -> str:
    """The device of a cluster's workers, which may have accelerators where this machine has none."""
    asked, gpus = options.device or study.device, study.resources.gpus
    if asked == "auto":
        return "cuda" if gpus else "cpu"
    if asked != "cpu" and not gpus:
        raise RunError(
            f"device {asked} on Ray: a cell is given no accelerator unless the study says how much of one it takes, as "
            "in `resources: {gpus: 0.25}`"
        )
    return asked


def assignment_for(run_cell: RunCell, bench: Workbench, plan: Plan, *, device: str) -> Assignment:
    """What workers of this plan receive."""
    material = bench.material
    rows = [material.rows[name] for shard in plan.all_shards for name in shard.samples]
    return Assignment(
        run_cell=run_cell,
        study=bench.study,
        folder=bench.folder,
        run=bench.run,
        device=device,
        data=material.data.subset(rows),
        digests={name: model.digest for name, model in material.models.items()},
        python_path=tuple(sys.path),
        modules=part_modules(plan, bench),
        detectors=tuple(configured_detectors(bench)),
    )
