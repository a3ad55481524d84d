"""Ledger rows of a cell, from the judge's verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from advrisk.core.flags import BATCH_DEPENDENT, CUT_SHORT, NO_START
from advrisk.core.traits import Accounting
from advrisk.core.version import VERSION
from advrisk.ledger import Outcome, constant, table_from
from advrisk.plan import Cell
from advrisk.run.judge import JudgeDraws, Judgement
from advrisk.run.perturb import AttackedShard, Attempt

MAX_CLASSES = 100  # past these, only the largest logits are stored
TOP_K = 20
_SPENT = ("n_forward", "n_backward", "n_rejected", "n_confirm")  # 0 for an arm without queries
DOUBTFUL = 0.1  # a cell is flagged where more than this share of it shows a sign of distrust


@dataclass(frozen=True)
class CellResult:
    """The ledger rows of one finished cell, and numbers for the progress report."""

    cell: str
    tables: dict[str, pa.Table]
    n_rows: int
    n_errors: int
    n_passes: int = 0
    wall_s: float = 0.0
    messages: tuple[str, ...] = field(default=())


def judged_result(
    cell: Cell,
    target: AttackedShard,
    attempt: Attempt,
    verdict: Judgement,
    *,
    run: str,
    criterion: str,
    wall_s: float,
    process_s: float,
) -> CellResult:
    """The rows of a cell that ran."""
    answered = np.array([outcome not in ("error", "timeout") for outcome in verdict.outcome])
    rejected = np.array([outcome == "rejected" for outcome in verdict.outcome])
    columns = _common(cell, run, criterion)
    columns |= {
        "target": None if target.goal.target is None else _ints(target.goal.target),
        "clean_prediction": _ints(target.clean_prediction),
        "prediction": _ints(verdict.prediction, answered & ~rejected),  # a refusal has no class
        "confidence": _confidence(target, verdict.answer, answered),
        "outcome": verdict.outcome,
        "survives_8bit": _survival(target, verdict),
        "success_rate": pa.array(verdict.success_rate.cpu().numpy(), mask=~answered),
        "draws": _drawn_classes(verdict.draws, answered),
        "n_judge": _ints(verdict.n_judge),
        "message": [message or None for message in verdict.message],
    }
    for norm, distance in verdict.distances.items():
        columns[f"d_{norm}"] = pa.array(distance.cpu().numpy(), mask=~answered)
        columns[f"near_{norm}"] = pa.array(verdict.near[norm].cpu().numpy(), mask=~answered)
    columns |= _counts(attempt, len(answered))
    tables = {
        "outcomes": table_from("outcomes", columns),
        "cells": _cell_row(
            cell,
            run,
            verdict.outcome,
            _flags(target, attempt, verdict) | vars(attempt.trust),
            inference_s=target.inference_s if cell.arm.kind == "clean" else None,
            accounting=attempt.accounting,
            wall_s=wall_s,
            process_s=process_s,
        ),
    }
    if target.model.capability != "labels":
        tables["outputs"] = _outputs(cell, verdict.answer, answered, verdict.draws)
    passes = sum(int(attempt.counts[name].sum()) for name in ("n_forward", "n_backward") if name in attempt.counts)
    return CellResult(
        cell.id,
        tables,
        n_rows=len(answered),
        n_errors=int((~answered).sum()),
        n_passes=passes + int(verdict.n_judge.sum()),
        wall_s=wall_s,
        messages=tuple(sorted(set(verdict.message) - {""})),
    )


def failed_result(cell: Cell, *, run: str, criterion: str, outcome: Outcome, message: str) -> CellResult:
    """The rows of a cell that could not be run: never missing, and never `resisted`."""
    n = len(cell.shard.samples)
    columns = _common(cell, run, criterion)
    columns |= {"outcome": constant(outcome, n), "message": constant(message, n)}
    columns |= {name: np.zeros(n, np.int64) for name in (*_SPENT, "n_judge")}
    tables = {
        "outcomes": table_from("outcomes", columns),
        "cells": _cell_row(cell, run, [outcome] * n, {"flags": []}, wall_s=None, process_s=None),
    }
    return CellResult(cell.id, tables, n_rows=n, n_errors=n, messages=(message,))


def nothing_to_transfer(need: Cell) -> str:
    """The message for samples whose points another cell should have crafted."""
    return f"{need.arm.shown} failed on {need.model}, so there is nothing to transfer"


def _common(cell: Cell, run: str, criterion: str) -> dict[str, Any]:
    n = len(cell.shard.samples)
    arm = cell.arm
    names = {
        "run": run,
        "cell": cell.id,
        "model": cell.model,
        "arm": arm.id,
        "kind": arm.kind,
        "family": arm.family,
        "norm": arm.norm,
        "objective": arm.objective,
        "criterion": criterion,
    }
    columns: dict[str, Any] = {name: constant(value, n) for name, value in names.items()}
    columns["sample"] = cell.shard.samples
    columns["repeat"] = np.full(n, cell.repeat, np.int32)
    columns["eps"] = pa.nulls(n, pa.float64()) if arm.eps is None else np.full(n, arm.eps)
    return columns


def _counts(attempt: Attempt, n: int) -> dict[str, Any]:
    columns: dict[str, Any] = {name: np.zeros(n, np.int64) for name in _SPENT}
    for name, count in attempt.counts.items():
        values = count.cpu().numpy()
        columns[name] = pa.array(values, mask=values < 0)
    for name, taken in (("first_s", attempt.first_s), ("spent_s", attempt.spent_s)):
        if taken is not None:
            seconds = taken.cpu().numpy()
            columns[name] = pa.array(seconds, mask=np.isnan(seconds))
    return columns


def _ints(values: Tensor, answered: Any = None) -> pa.Array:
    return pa.array(values.cpu().numpy(), mask=None if answered is None else ~answered)


def _confidence(target: AttackedShard, answer: Tensor, answered: Any) -> pa.Array:
    if target.model.capability == "labels":
        return pa.nulls(len(answered), pa.float32())
    return pa.array(torch.softmax(answer, 1).amax(1).cpu().numpy(), mask=~answered)


def _survival(target: AttackedShard, verdict: Judgement) -> pa.Array:
    tested = np.array([target.is_image and name == "success" for name in verdict.outcome])
    return pa.array(verdict.survives_8bit.cpu().numpy(), mask=~tested)


def _flags(target: AttackedShard, attempt: Attempt, verdict: Judgement) -> dict[str, Any]:
    """Reasons not to trust a cell."""
    trust = attempt.trust
    raised = {
        "zero-gradients": _above(trust.zero_gradients),
        "not-increasing": _above(trust.not_increasing),
        "still-gaining": _above(trust.still_gaining),
        NO_START: trust.no_start is not None,
        "random-model": target.model.random,
        BATCH_DEPENDENT: target.model.batch_dependent,
        "unconfirmed": verdict.n_unconfirmed > 0,
        CUT_SHORT: attempt.cut_short,
        "not-crafted": attempt.not_crafted,
    }
    return {"flags": [name for name, is_raised in raised.items() if is_raised]}


def _above(share: float | None) -> bool:
    return share is not None and share > DOUBTFUL


def _drawn_classes(draws: JudgeDraws | None, answered: Any) -> Any:
    """The class of each draw; null for a model that does not draw, and for points that the judge did not query."""
    if draws is None:
        return None
    queried = draws.queried.numpy() & answered
    return [row if has else None for row, has in zip(draws.classes.tolist(), queried.tolist(), strict=True)]


def _outputs(cell: Cell, answer: Tensor, answered: Any, draws: JudgeDraws | None) -> pa.Table:
    kept = answer.float().cpu()[torch.from_numpy(answered)]
    scores = None if draws is None or draws.scores is None else draws.scores[torch.from_numpy(answered)]
    classes = None
    if kept.shape[1] > MAX_CLASSES:
        kept, chosen = kept.topk(TOP_K, dim=1)
        classes = list(chosen.numpy().astype(np.int32))
        if scores is not None:
            scores = scores.gather(2, chosen[:, None].expand(-1, scores.shape[1], -1))
    samples = [sample for sample, has in zip(cell.shard.samples, answered, strict=True) if has]
    columns = {"cell": constant(cell.id, len(samples)), "sample": samples, "logits": list(kept.numpy())}
    if scores is not None and draws is not None:
        queried = draws.queried.numpy()[answered].tolist()
        columns["draws"] = [row if has else None for row, has in zip(scores.flatten(1).numpy(), queried, strict=True)]
    return table_from("outputs", columns | ({"classes": classes} if classes is not None else {}))


def _cell_row(
    cell: Cell,
    run: str,
    outcomes: Sequence[str],
    doubts: dict[str, Any],
    *,
    wall_s: float | None,
    process_s: float | None,
    inference_s: float | None = None,
    accounting: Accounting = "sample",
) -> pa.Table:
    row = {
        "cell": cell.id,
        "recipe": cell.recipe,
        "run": run,
        "model": cell.model,
        "arm": cell.arm.id,
        "repeat": cell.repeat,
        "shard": cell.shard.id,
        "n_samples": len(outcomes),
        "n_errors": sum(name in ("error", "timeout") for name in outcomes),
        "accounting": accounting,
        "wall_s": wall_s,
        "process_s": process_s,
        "inference_s": inference_s,
        "version": VERSION,
        "torch": str(torch.__version__),
        **doubts,
    }
    return table_from("cells", {name: [value] for name, value in row.items()})
