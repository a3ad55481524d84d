"""One cell: perturb, judge, rows. `run_cell` is what every executor runs, wherever it runs it."""

import time

import numpy as np
import torch

from advrisk.core.errors import RunError
from advrisk.engine import Noise
from advrisk.engine.threads import one_thread
from advrisk.ledger.inputs import (
    cell_inputs,
    crafted_inputs,
    example_inputs,
    read_inputs,
    shard_inputs,
    write_bounds,
    write_inputs,
)
from advrisk.plan import Cell
from advrisk.run.judge import Judgement, judge
from advrisk.run.perturb import AttackedShard, Attempt, Crafted, Settled, judge_keys, perturb
from advrisk.run.pulse import Pulse
from advrisk.run.rows import CellResult, failed_result, judged_result, nothing_to_transfer
from advrisk.run.scheduling import arm_passes
from advrisk.run.workbench import Points, Workbench


def run_cell(cell: Cell, bench: Workbench) -> CellResult:
    """Perturb the samples of a cell, judge what the arm kept, and return the rows. A failure becomes error rows."""
    try:
        bench.warm_up(cell)
        began, began_process = time.perf_counter(), time.process_time()
        target, attempt, verdict = perturb_and_judge(cell, bench)
        _keep_inputs(cell, attempt, verdict, bench)
    except Exception as error:  # the cell boundary
        message = f"{type(error).__name__}: {error}"
        return failed_result(cell, run=bench.run, criterion=bench.study.criterion, outcome="error", message=message)
    return judged_result(
        cell,
        target,
        attempt,
        verdict,
        run=bench.run,
        criterion=bench.study.criterion,
        wall_s=time.perf_counter() - began,
        process_s=time.process_time() - began_process,
    )


def perturb_and_judge(cell: Cell, bench: Workbench) -> tuple[AttackedShard, Attempt, Judgement]:
    """Let the arm perturb the samples through the probe, and let the judge verify the points that it kept."""
    crafted = _points_to_transfer(cell, bench)
    # A model that draws at random does so from the cell's own seed.
    with bench.containment.around(cell.model), torch.random.fork_rng(devices=()):
        torch.manual_seed(int(cell.id[:15], 16))
        target = bench.target(cell)
        attempt = perturb(
            target,
            cell,
            bench.registries,
            seed=bench.study.seed,
            max_cell_s=None if cell.is_example else bench.study.max_cell_s,  # examples must not depend on a clock
            crafted=crafted,
            suspicion=bench.suspicion(cell.model, cell.arm),
            pulse=_pulse(cell, bench),
        )
        # New draws for clean inputs, too: those that selected incorrect samples overstate their error.
        chance = Noise(judge_keys(bench.study.seed, cell), device=target.x0.device)
        verdict = judge(target, attempt, cell.arm, chance)
    return target, attempt, verdict


def _pulse(cell: Cell, bench: Workbench) -> Pulse | None:
    """What reports how far the cell is; None where nothing listens."""
    if bench.on_share is None or cell.arm.kind != "attack":
        return None
    try:
        most, _ = arm_passes(cell.model, cell.arm, bench)
    except Exception:  # of a user's own attack: progress is not worth a cell
        most = 0
    return Pulse(cell.id, bench.on_share, most_passes=most)


def _points_to_transfer(cell: Cell, bench: Workbench) -> Crafted | None:
    """The points of the cell that this one needs; None for a cell that crafts its own."""
    if not cell.needs:
        return None
    (need,) = cell.needs
    points = _points_of(need, bench)
    rows = [bench.material.rows[name] for name in cell.shard.samples]
    x = bench.material.data.x[rows]
    missing: dict[int, Settled] = {}
    for row, name in enumerate(cell.shard.samples):
        if np.isnan(points[name]).any():
            missing[row] = "error", nothing_to_transfer(need)
        elif np.array_equal(points[name], x[row]):
            missing[row] = "resisted", f"{need.arm.shown} left this sample of {need.model} as it was"
        else:
            x[row] = points[name]
    return Crafted(torch.from_numpy(x).to(bench.material.models[cell.model].device), missing)


def _points_of(cell: Cell, bench: Workbench) -> Points:
    """The points of a cell: cached, read, or, if they were not kept, crafted again from the same seeds."""
    if cell.id not in bench.crafted:
        path = crafted_inputs(bench.folder, cell.id)
        points = read_inputs(path) if path.is_file() else {}
        if points.keys() != set(cell.shard.samples):  # for example deleted
            _, attempt, verdict = perturb_and_judge(cell, bench)
            _keep_crafted(cell, attempt, verdict, bench)
        else:
            bench.remember(cell, points)
    return bench.crafted[cell.id]


def craft_again(cell: Cell, bench: Workbench) -> Points:
    """Craft the successes of a finished cell again, from the same seeds."""
    with one_thread():
        _, attempt, verdict = perturb_and_judge(cell, bench)
    return _successes(cell, attempt, verdict)


def craft_examples(cell: Cell, bench: Workbench) -> Points:
    """The successes of a cell that detectors learn from: read, or crafted. An error row raises."""
    path = example_inputs(bench.folder, cell.model, cell.id)
    if path.is_file():
        return read_inputs(path)
    _, attempt, verdict = perturb_and_judge(cell, bench)
    for sample, outcome, message in zip(cell.shard.samples, verdict.outcome, verdict.message, strict=True):
        if outcome in ("error", "timeout"):
            raise RunError(f"{cell.arm.id}, which detectors learn from, failed on sample {sample}: {message}")
    points = _successes(cell, attempt, verdict)
    if bench.study.keep_inputs != "none":
        shape = (0, *bench.material.data.x.shape[1:])
        write_inputs(path, list(points), np.stack([*points.values()]) if points else np.empty(shape, np.float32))
    return points


def _keep_inputs(cell: Cell, attempt: Attempt, verdict: Judgement, bench: Workbench) -> None:
    """Store the inputs that `keep_inputs` demands, and the points that other cells transfer."""
    if cell.is_needed:
        _keep_crafted(cell, attempt, verdict, bench)
    study, material = bench.study, bench.material
    if study.keep_inputs == "none" or not cell.keeps_inputs:
        return
    if not (clean := shard_inputs(bench.folder, cell.shard.id)).exists():
        rows, space = [material.rows[name] for name in cell.shard.samples], material.space
        write_bounds(bench.folder, space.low.cpu().numpy(), space.high.cpu().numpy())
        write_inputs(clean, cell.shard.samples, material.data.x[rows])
    wanted = np.array([name == "success" for name in verdict.outcome]) | (study.keep_inputs == "all")
    if wanted.any() and cell.arm.kind != "clean":
        samples = [name for name, want in zip(cell.shard.samples, wanted, strict=True) if want]
        perturbed = attempt.kept[torch.from_numpy(wanted)].cpu().numpy()
        write_inputs(cell_inputs(bench.folder, cell.id), samples, perturbed)


def _keep_crafted(cell: Cell, attempt: Attempt, verdict: Judgement, bench: Workbench) -> None:
    """Keep the points of all samples for the cells that transfer them; NaN where the arm failed."""
    kept = attempt.kept.cpu().numpy().copy()
    kept[[outcome in ("error", "timeout") for outcome in verdict.outcome]] = np.nan
    bench.remember(cell, dict(zip(cell.shard.samples, kept, strict=True)))
    if bench.study.keep_inputs != "none":
        write_inputs(crafted_inputs(bench.folder, cell.id), cell.shard.samples, kept)


def _successes(cell: Cell, attempt: Attempt, verdict: Judgement) -> Points:
    points = zip(cell.shard.samples, attempt.kept.cpu().numpy(), verdict.outcome, strict=True)
    return {sample: point for sample, point, outcome in points if outcome == "success"}
