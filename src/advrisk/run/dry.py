"""The estimated work and time of a run."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from advrisk.core.digest import digest
from advrisk.engine import Model
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger, Storage
from advrisk.ledger.searches import read_course
from advrisk.parts.detectors import Detector
from advrisk.plan import Cell, Plan, Search, Shard, calibrate_plan
from advrisk.plan.recipe import recipe_of
from advrisk.run.cell import run_cell
from advrisk.run.detectors.fitting import lessons
from advrisk.run.detectors.ready import Scores, Unlearned, checked_scores
from advrisk.run.detectors.scoring import is_kept, unscored
from advrisk.run.executors.choice import worker_count
from advrisk.run.finished import unfinished_cells
from advrisk.run.identity.resumed import refuse_changed_models
from advrisk.run.interim import Rounds, Schedule
from advrisk.run.measuring import measure_passes, unmeasured
from advrisk.run.options import DEFAULTS, Options
from advrisk.run.planning import plan_study, splits
from advrisk.run.preparation import prepare
from advrisk.run.scheduling import is_counted, most_passes
from advrisk.run.search.design import first_settings, grid_settings
from advrisk.run.search.loop import course_of
from advrisk.run.workbench import Workbench
from advrisk.study import Arm, StudySpec

# Time limits of one trial cell, and of all trials together; single passes may take longer.
_TRIAL_S = 0.3
_TRIALS_S = 5.0
# Overhead per cell, and once per run.
_CELL_S = 0.02
_START_S = 6.0
_SCORED = 64  # inputs for the trial of a detector


@dataclass(frozen=True)
class DryRun:
    """Upper bounds of the passes, and their time; samples that are broken early leave their batch and cost less.

    `uncounted` names arms without such a bound; no number here includes theirs. The seconds include scoring, except by
    detectors that have not learned yet.
    """

    n_cells: int
    n_skipped: int
    n_rows: int
    n_forward: int
    n_backward: int
    seconds: float
    workers: int
    by_arm: dict[str, int]  # arm -> passes, forward and backward
    by_model: dict[str, float]  # model -> seconds of one worker
    uncounted: list[str]  # arms
    n_scores: int = 0  # inputs that detectors would score, if every attack succeeded
    by_measure: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # forward and backward passes, in addition to those above
    lessons: tuple[str, ...] = ()  # `lid to plain`: fits before the run, which no number here includes
    n_beside: int = 0  # cells on the tuning or calibration split
    searches: tuple[str, ...] = ()  # each with the largest number of settings
    looks: tuple[int, ...] = ()  # numbers of samples at the interim analyses, until the targets are met
    look_levels: dict[str, float] = field(default_factory=dict)  # target -> level of its first analysis
    n_passes_to_look: int = 0  # up to the first analysis, at most
    doubts: tuple[str, ...] = ()  # about the study, which would not stop it
    n_crafted_again: int = 0  # cells whose inputs are not kept, once for each detector; passes and seconds hold theirs


def dry_run(
    study: StudySpec,
    folder: Path,
    *,
    options: Options = DEFAULTS,
    modules: Mapping[str, nn.Module] | None = None,
    detectors: Mapping[str, Scores] | None = None,
) -> DryRun:
    """Plan a study, time one cell of each kind here briefly, and extrapolate. Refuses the same studies as a run."""
    ready = prepare(study, folder, options, modules, detectors)
    ready.trial.end()
    bench = ready.bench
    ledger = Ledger(Storage(folder))  # empty if there is none yet; nothing is written
    plan = plan_study(ready.outline, ledger, bench)
    doubts = (*ready.doubts, *refuse_changed_models(bench, plan, ledger))
    to_learn = lessons(bench, ready.detectors)
    bench.detectors |= {lesson.detector.id: Unlearned(lesson.detector.readable) for lesson in to_learn}
    missing = list(unfinished_cells(plan, ledger, retry_errors=options.retry_errors))
    beside, n_beside_done = cells_to_come(bench, plan, ledger, retry_errors=options.retry_errors)
    again = _crafted_again(ledger, bench, plan, missing)
    counted, counted_again = (
        [cell for cell in some if is_counted(cell.model, cell.arm, bench)] for some in ([*missing, *beside], again)
    )
    pass_s = _seconds_per_pass([*counted, *counted_again], bench)
    interim = _interim_schedule(bench, plan, options)
    n_forward, n_backward, n_to_look, longest_s, again_s = 0, 0, 0, 0.0, 0.0
    by_arm = {arm.shown: 0 for model, arm in plan.attempts if is_counted(model, arm, bench)}
    by_arm |= {cell.arm.shown: 0 for cell in beside if is_counted(cell.model, cell.arm, bench)}
    by_model = dict.fromkeys(bench.material.models, 0.0)
    for index, cell in enumerate([*counted, *counted_again]):
        forward, backward = most_passes(cell, bench)
        n = len(cell.shard.samples)
        n_forward, n_backward = n_forward + n * forward, n_backward + n * backward
        by_arm[cell.arm.shown] += n * (forward + backward)
        n_to_look += n * (forward + backward) if index < len(counted) and cell.shard.id in interim.first else 0
        cell_s = _CELL_S + min(forward * pass_s[_kind(cell)], study.max_cell_s or float("inf"))
        if index >= len(counted):  # one after the other, while detectors score
            again_s += cell_s
            continue
        by_model[cell.model] += cell_s
        longest_s = max(longest_s, cell_s)
    workers = ready.n_remote or worker_count(bench, plan, options) or 1
    n_scores, score_s = _scoring(ledger, bench, missing, {lesson.detector.id for lesson in to_learn})
    waiting = unmeasured(ledger, bench, plan, answered_only=False, retry_errors=options.retry_errors)
    missing = [*missing, *beside]
    attack_s = _START_S + max(sum(by_model.values()) / workers, longest_s) if missing else 0.0
    return DryRun(
        n_cells=len(missing),
        n_skipped=plan.n_cells - (len(missing) - len(beside)) + n_beside_done,
        n_rows=sum(len(cell.shard.samples) for cell in missing),
        n_forward=n_forward,
        n_backward=n_backward,
        seconds=attack_s + again_s + score_s,
        workers=workers,
        by_arm=by_arm,
        by_model=by_model,
        uncounted=sorted({cell.arm.shown for cell in [*missing, *again]} - by_arm.keys()),
        n_scores=n_scores,
        by_measure=measure_passes(waiting, bench),
        lessons=tuple(f"{lesson.detector.readable} to {lesson.model}" for lesson in to_learn),
        looks=interim.n_samples,
        look_levels=dict(interim.levels),
        n_passes_to_look=n_to_look,
        n_crafted_again=len(again),
        n_beside=len(beside),
        doubts=doubts,
        searches=tuple(f"{search.label}: {n_settings(search, study.seed)} settings" for search in plan.searches),
    )


def _interim_schedule(bench: Workbench, plan: Plan, options: Options) -> Schedule:
    """The interim analyses of the targets; none if there are no targets."""
    if not options.targets:
        return Schedule((), {}, ())
    return Rounds(bench, plan, frozenset(), options.targets, None, options.max_passes).schedule()


def _crafted_again(ledger: Ledger, bench: Workbench, plan: Plan, missing: Sequence[Cell]) -> list[Cell]:
    """The cells to craft again, once per detector, as detectors need their inputs and the run does not keep them."""
    waiting = [batch for batch in unscored(ledger, bench) if not is_kept(batch, bench)]
    cells = [plan.find(batch.cell, batch.model, batch.arm, batch.samples[0]) for batch in waiting]
    again = [cell for cell in cells if cell is not None]
    if bench.study.keep_inputs == "none":
        assessed = bench.material.models.keys() - bench.material.surrogates
        to_come = [cell for cell in missing if cell.arm.kind != "clean" and cell.model in assessed]
        again += [cell for _ in bench.detectors for cell in to_come]
    return again


def _scoring(ledger: Ledger, bench: Workbench, missing: Sequence[Cell], unlearned: set[str]) -> tuple[int, float]:
    """The most inputs that detectors would score, and the seconds for detectors that need not learn first."""
    surrogates = bench.material.surrogates
    to_come = Counter(cell.model for cell in missing for _ in cell.shard.samples if cell.model not in surrogates)
    n_calibrate = sum(split == "calibrate" for split in splits(bench.study, bench).values())
    for name in to_come.keys() - set(ledger.query("SELECT DISTINCT model FROM arms")["model"].to_pylist()):
        to_come[name] += n_calibrate  # of others, what is not scored yet is known
    n_scores, seconds = 0, 0.0
    waiting = Counter((batch.scorer.id, batch.model) for batch in unscored(ledger, bench) for _ in batch.samples)
    for name, detector in bench.detectors.items():
        for model in bench.material.models.values():
            n = to_come[model.name] + waiting[name, model.name]
            n_scores += n
            if n and name not in unlearned:
                seconds += n * _score_s(name, detector, model, bench)
    return n_scores, seconds


def _score_s(name: str, detector: Detector, model: Model, bench: Workbench) -> float:
    """Seconds that a detector takes for an input; the second time, as the first warms up."""
    x = torch.from_numpy(bench.material.data.x[:_SCORED]).to(model.device)
    with one_thread():
        for _ in range(2):
            began = time.perf_counter()
            checked_scores(name, detector, x, model, "inputs tried out")
    return (time.perf_counter() - began) / len(x)


def _kind(cell: Cell) -> str:
    """A digest of a cell without eps, samples and repeat, which hardly change the time per pass."""
    arm = cell.arm
    return digest([cell.model, arm.kind, arm.family, arm.norm, arm.objective, dict(arm.params)])


def _seconds_per_pass(cells: Sequence[Cell], bench: Workbench) -> dict[str, float]:
    """For each kind of cell, the seconds per forward pass of its batch, with all other work of the cell.

    This includes backward passes, the attack's own arithmetic and the judge: with small models they cost more than the
    forward pass.
    """
    first = {_kind(cell): cell for cell in reversed(cells)}
    limit_s = min(_TRIAL_S, _TRIALS_S / max(len(first), 1))
    study = bench.study.model_copy(update={"keep_inputs": "none", "max_cell_s": limit_s})  # nothing is written
    trial = replace(bench, study=study, _targets={}, crafted={})
    with one_thread():
        return {kind: _tried_out(cell, trial, limit_s) for kind, cell in first.items()}


def _tried_out(cell: Cell, bench: Workbench, limit_s: float) -> float:
    """Seconds per pass of a cell: the better of two runs, as the first warms up; of one, if it took long."""
    for need in cell.needs:  # outside this cell's own time
        run_cell(need, bench)
    began = time.perf_counter()
    pass_s = _timed(cell, bench)
    return pass_s if time.perf_counter() - began > limit_s else min(pass_s, _timed(cell, bench))


def _timed(cell: Cell, bench: Workbench) -> float:
    began = time.perf_counter()
    result = run_cell(cell, bench)
    wall_s = time.perf_counter() - began
    rows = result.tables["outcomes"]
    attacked, judged = (max(rows[name].to_pylist(), default=0) for name in ("n_forward", "n_judge"))
    if not attacked:  # for example all clean predictions incorrect: other cells will hardly be longer
        return wall_s / most_passes(cell, bench)[0]
    return wall_s / (attacked + judged)


def cells_to_come(
    bench: Workbench, plan: Plan, ledger: Ledger, *, retry_errors: bool = False
) -> tuple[list[Cell], int]:
    """The most cells still to run on the tuning and calibration splits, and the number of finished ones.

    One attack represents all settings of a search: that at the far end of its box, under the name of the search.
    """
    finished = ledger.finished_cells(without_errors=retry_errors)
    wanted = calibrate_plan(bench.study, plan)
    own = list(wanted.cells())
    missing = [cell for cell in own if cell.id not in finished]
    n_done = len(own) - len(missing)
    for search in plan.searches:
        stored = read_course(bench.folder, course_of(search, bench, plan).id)
        tried = [] if stored is None else [setting for one in stored.rounds for setting in one.settings]
        left = max(0, n_settings(search, bench.study.seed) - len(tried))
        stand_in = _stand_in(search, bench)
        missing += _copies(search, stand_in, plan.tune, left, bench, plan)
        n_done += len(tried) * len(plan.tune) * search.arm.repeats
        if bench.study.assess.certificate is not None:
            n_frozen = 0 if stored is not None and stored.frozen and not left else search.freeze
            missing += _copies(search, stand_in, plan.calibrate, n_frozen, bench, plan)
    return missing, n_done


def n_settings(search: Search, seed: int) -> int:
    """The most settings that a search tries."""
    if search.method == "grid":
        return len(grid_settings(search))
    first = len(first_settings(search, seed)) if search.method == "gp-ucb" else 0
    return first + search.rounds * search.batch


def _stand_in(search: Search, bench: Workbench) -> Arm:
    """The attack at the far end of its box, where parameters such as steps cost the most."""
    arm = search.arm_at(search.setting([1.0] * len(search.axes)), bench.registries)
    return replace(arm, id=f"{search.name} over {', '.join(axis.name for axis in search.axes)}")


def _copies(search: Search, arm: Arm, shards: Sequence[Shard], n: int, bench: Workbench, plan: Plan) -> list[Cell]:
    material = bench.material
    digest = material.models[search.model].digest
    recipes = {(search.model, arm.id): recipe_of(bench.study, bench.registries, digest, arm, material.space_digest)}
    alone = replace(plan, assessed=((search.model, arm),), crafting=(), shards=tuple(shards), recipes=recipes)
    return n * list(alone.cells())
