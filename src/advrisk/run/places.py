"""Where the cells of a study are carried out: in this process, in processes of this machine, or on a Ray cluster.

What cannot be carried out there is refused here. Nothing in this file begins anything.
"""

import os
import sys
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from advrisk.core.errors import RunError
from advrisk.core.names import did_you_mean
from advrisk.core.registry import Part
from advrisk.plan import Plan
from advrisk.run.bench import Workbench
from advrisk.run.detectors import HandedOver
from advrisk.run.executors import Assignment
from advrisk.run.loading import OBJECT, choose_device
from advrisk.run.question import configured_detectors
from advrisk.run.ray_cluster import refuse_without_cluster
from advrisk.study import StudySpec, Target

Place = Literal["local", "ray"]


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of these changes a row."""

    workers: int | None = None
    device: str | None = None
    max_s: float | None = None  # after which no cell is begun
    retry_errors: bool = False
    publish_every_s: float = 3.0
    on: Place = "local"
    address: str | None = None  # of a Ray cluster
    max_passes: int | None = None
    targets: tuple[Target, ...] = ()  # the run rests once they are met


DEFAULTS = Options()
_ELSEWHERE = "put it into a file or a module that the study names, or leave out --on ray"


def refuse_place(study: StudySpec, options: Options) -> int:
    """Before anything is loaded: a place that is unknown, does not answer, or has not what a cell takes.

    How many workers a cluster would have; 0 where none is asked for.
    """
    if options.on not in get_args(Place):
        raise RunError(f"on: found {options.on!r}; {did_you_mean(options.on, get_args(Place))}")
    if options.on == "ray":
        far_device(study, options)
        here = {"CPU": float(n_cores()), "GPU": float(torch.accelerator.device_count())}
        return refuse_without_cluster(options.address, study.resources, workers=options.workers, here=here)
    if options.address is not None:
        raise RunError(f"an address, {options.address}, is that of a Ray cluster: add --on ray, or on='ray' in Python")
    return 0


def refuse_only_here(bench: Workbench, plan: Plan, options: Options) -> None:
    """What cannot be sent to a cluster."""
    if options.on == "ray" and (found := only_here(bench, plan)):
        raise RunError(f"{found}: it cannot be sent to a Ray cluster; {_ELSEWHERE}")


def own_device(study: StudySpec, options: Options) -> str:
    """Where this process computes: on Ray it learns and scores, on whatever it has, unless all are to use the CPU."""
    asked = options.device or study.device
    return choose_device("auto" if options.on == "ray" and asked != "cpu" else asked)


def worker_count(bench: Workbench, plan: Plan, options: Options) -> int:
    """One worker per core, but one in all on an accelerator, unless `resources` says otherwise; 0: in this process.

    A model, a detector or a part that exists in this process only cannot be had elsewhere.
    """
    if only_here(bench, plan):
        return 0
    on_accelerator = any(model.device != "cpu" for model in bench.material.models.values())
    resources = bench.study.resources
    if on_accelerator:
        room = resources.fitting(n_cores(), 1) if resources.gpus else 1
    else:
        room = int(n_cores() / resources.cpus + 1e-9)
    return options.workers or max(room, 1)


def only_here(bench: Workbench, plan: Plan) -> str:
    """A model, a detector or a part that exists in this process only; nothing where there is none."""
    for name, spec in bench.study.models.items():
        if spec.source == OBJECT:
            return f"the model {name} is an object of this process"
    for name in plan.watched:
        if isinstance(bench.detectors[name], HandedOver):
            return f"the detector {name} is an object of this process"
    return "a part of the study is defined in the script that was started" if "__main__" in homes(plan, bench) else ""


def n_cores() -> int:
    """The cores this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def homes(plan: Plan, bench: Workbench) -> tuple[str, ...]:
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


def far_device(study: StudySpec, options: Options) -> str:
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


def assignment_for(bench: Workbench, plan: Plan, *, device: str) -> Assignment:
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
        modules=homes(plan, bench),
        detectors=tuple(configured_detectors(bench)),
    )
