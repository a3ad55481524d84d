"""What a run would do and cost, before it does it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from advrisk.core.registries import Registries
from advrisk.engine import Model
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger
from advrisk.plan import Cell
from advrisk.run.bench import Workbench
from advrisk.run.campaign import DEFAULTS, Options, set_up, unfinished_cells, worker_count
from advrisk.run.question import plan_study
from advrisk.study import Arm, StudySpec

_PASSES_TIMED = 3
# What a run takes beside bare passes of full batches (`make bench`, passes: 1.2 to 1.5; small batches cost more),
# beside its passes per cell, and once.
_OVERHEAD = 1.6
_CELL_S = 0.02
_START_S = 6.0


@dataclass(frozen=True)
class DryRun:
    """An upper bound: samples that fall early leave their batch and cost less."""

    n_cells: int
    n_skipped: int
    n_rows: int
    n_forward: int
    n_backward: int
    seconds: float
    workers: int
    by_arm: dict[str, int]  # arm -> passes, forward and backward
    by_model: dict[str, float]  # model -> seconds of one worker


def dry_run(
    study: StudySpec,
    folder: Path,
    *,
    options: Options = DEFAULTS,
    modules: Mapping[str, nn.Module] | None = None,
) -> DryRun:
    """Plan a study, time one pass of each model here, and multiply."""
    bench = set_up(study, folder, options, modules)
    ledger = Ledger(folder / "ledger")  # empty if there is none yet; nothing is written
    plan = plan_study(study, ledger, bench)
    missing = unfinished_cells(plan, ledger, retry_errors=options.retry_errors)
    with one_thread():
        pass_s = {name: _pass_seconds(model, bench, study.shard) for name, model in bench.material.models.items()}
    n_forward, n_backward, n_rows = 0, 0, 0
    by_arm, by_model = dict.fromkeys((arm.id for arm in plan.arms), 0), dict.fromkeys(pass_s, 0.0)
    for cell in missing:
        forward, backward = _most_passes(cell, bench.registries, bench.material.models[cell.model].n_classes)
        n_rows += len(cell.shard.samples)
        n_forward, n_backward = n_forward + forward, n_backward + backward
        by_arm[cell.arm.id] += forward + backward
        by_model[cell.model] += forward * pass_s[cell.model][0] + backward * pass_s[cell.model][1]
    workers = worker_count(bench, plan, options) or 1
    return DryRun(
        n_cells=len(missing),
        n_skipped=plan.n_cells - len(missing),
        n_rows=n_rows,
        n_forward=n_forward,
        n_backward=n_backward,
        seconds=_START_S + (_OVERHEAD * sum(by_model.values()) + _CELL_S * len(missing)) / workers if missing else 0.0,
        workers=workers,
        by_arm=by_arm,
        by_model=by_model,
    )


def _most_passes(cell: Cell, registries: Registries, n_classes: int) -> tuple[int, int]:
    """Forward and backward passes of a cell at most, those of the judge included."""
    forward, backward = _arm_passes(cell.arm, registries, n_classes)
    n = len(cell.shard.samples)
    return n * (forward + (2 if cell.arm.kind == "attack" else 1)), n * backward


def _arm_passes(arm: Arm, registries: Registries, n_classes: int) -> tuple[int, int]:
    if arm.kind != "attack":
        return 0, 0
    forward, backward = registries.attacks.get(arm.family).traits.passes(arm.params, n_classes)
    return (forward if arm.max_queries is None else min(forward, arm.max_queries)), backward


def _pass_seconds(model: Model, bench: Workbench, rows: int) -> tuple[float, float]:
    """Seconds per sample of a forward pass, and of the backward pass through it."""
    x = torch.from_numpy(bench.material.data.x[:rows]).to(model.device)
    forward_s, backward_s = [], []
    for _ in range(_PASSES_TIMED):
        began = time.perf_counter()
        gradients = model.capability == "gradients"
        x.requires_grad_(gradients)
        answer = model.ask(x)
        middle = time.perf_counter()
        if gradients:
            torch.autograd.grad(answer.sum(), x)
        forward_s.append((middle - began) / len(x))
        backward_s.append((time.perf_counter() - middle) / len(x))
    return min(forward_s), min(backward_s)
