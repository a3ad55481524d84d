"""Before a run: load what the study names, and refuse what cannot work. Nothing is written."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from torch import nn

from advrisk.assess.protocol import check_assessments
from advrisk.core.errors import RunError
from advrisk.core.extras import needs_extra
from advrisk.parts import REGISTRIES
from advrisk.plan import ConfiguredDetector, Plan, names_of
from advrisk.run.checks.accuracy import doubts_about
from advrisk.run.checks.written import refuse_miswritten
from advrisk.run.detectors.ready import Scores, python_detectors, ready_detector, refuse_undetected, refuse_unnamed
from advrisk.run.executors.choice import local_device, refuse_executor, refuse_local_only
from advrisk.run.executors.trial import TrialProcess
from advrisk.run.loading import load_data, search_beside
from advrisk.run.options import Options
from advrisk.run.planning import configured_detectors, outline_study, refuse_impossible
from advrisk.run.workbench import Workbench
from advrisk.study import StudySpec
from advrisk.study.own_code import may_register_parts


@dataclass(frozen=True)
class Prepared:
    """A study that is loaded and checked."""

    bench: Workbench
    detectors: list[ConfiguredDetector]
    outline: Plan  # which arm meets which model
    doubts: tuple[str, ...]  # about the study, which do not stop it
    trial: TrialProcess  # which the run ends
    n_remote: int  # workers that a Ray cluster would have; 0 where none is asked for


def prepare(
    study: StudySpec,
    folder: Path,
    options: Options,
    modules: Mapping[str, nn.Module] | None,
    detectors: Mapping[str, Scores] | None,
) -> Prepared:
    """Load a study's data, models and detectors, and outline its plan."""
    if detectors or may_register_parts([spec.params for spec in study.models.values()], study.where.folder):
        check_assessments(study)  # other names may be theirs: the outline refuses them once they are loaded
    else:
        refuse_miswritten(study, REGISTRIES)
    _refuse_without_botorch(study)
    n_remote = refuse_executor(study, options)
    trial = TrialProcess(study, REGISTRIES)
    try:
        bench = load_bench(study, folder, options, modules, trial)
        configured = add_detectors(bench, detectors or {})
        outline = outline_study(bench, configured)
        refuse_impossible(outline, bench, configured, options.targets)
        refuse_local_only(bench, outline, options)
        return Prepared(bench, configured, outline, doubts_about(bench), trial, n_remote)
    except BaseException:
        trial.end()
        raise


def _refuse_without_botorch(study: StudySpec) -> None:
    """Refuse a search by GP-UCB where its package is not installed: no setting has been tried yet."""
    surrogates = [n for n, entry in enumerate(study.search) if entry.method == "gp-ucb"]
    if surrogates and find_spec("botorch") is None:
        raise study.where.error(("search", surrogates[0]), needs_extra("a search by gp-ucb", "botorch"))


def load_bench(
    study: StudySpec,
    folder: Path,
    options: Options,
    modules: Mapping[str, nn.Module] | None = None,
    trial: TrialProcess | None = None,
) -> Workbench:
    """Load the data and models of a study onto a workbench of this process, the models on trial first."""
    device = local_device(study, options)
    search_beside(study.where)
    data = load_data(study.data, REGISTRIES, study.where)
    if trial is not None:
        trial.load(data, device)
    run = uuid.uuid4().hex[:12]
    return Workbench.set_up(study, REGISTRIES, folder=folder, run=run, device=device, data=data, modules=modules)


def add_detectors(bench: Workbench, objects: Mapping[str, Scores]) -> list[ConfiguredDetector]:
    """Put the detectors of a study, and Python objects (name -> object), on the workbench; return all of them."""
    added = python_detectors(objects, bench.material.data.x, next(iter(bench.material.models.values())))
    configured = configured_detectors(bench)
    bench.detectors |= {one.id: ready_detector(one, bench.study, bench.registries, bench.folder) for one in configured}
    bench.detectors |= {one.id: detector for one, detector in added}
    bench.detector_names |= {one.id: one.alias for one in configured if one.alias}
    for one, _ in added:
        if one.readable in names_of(configured):
            raise RunError(f"the study has a detector called {one.readable!r}; hand the object over by another name")
    every = [*configured, *(one for one, _ in added)]
    refuse_unnamed(bench.study, every)
    refuse_undetected(bench.study, every, bench.folder)
    return every
