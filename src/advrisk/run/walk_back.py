"""How near the clean input a success still is one: the judge's measurement of distance.

An attack at a fixed eps stops wherever it first succeeds, or at eps, so the distance of its kept point says where the
attack stopped, not where the model fails. The judge walks each success back along the straight line to the clean input
and measures the nearest success that it meets. The kept point stays as it is.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.engine import Goal, Noise, Space
from advrisk.engine.heard import clear_lead
from advrisk.engine.norms import NORMS
from advrisk.engine.objectives import margin
from advrisk.run.perturb import Target
from advrisk.run.redrawing import redrawn
from advrisk.study import Arm, Norm

TRIES = 6  # passes per success; what more would gain: `python -m bench walk_back`
_BEYOND = 0.02  # how far beyond the estimated boundary to try, as a share of the way that is left
_GRID = 4096  # places between the clean input and the kept point: finer differences are rounding of the margin


@dataclass(frozen=True)
class Measured:
    """Distances of the nearest successes on the way, by norm, and the passes they took; one entry per row."""

    distances: dict[Norm, Tensor]
    n_forward: int


def walks_back(arm: Arm) -> bool:
    """Whether the distance of what an arm keeps says where the attack stopped rather than where the model fails."""
    return arm.kind == "attack" and arm.norm is not None and arm.keep != "smallest"


def walk_back(
    target: Target,
    kept: Tensor,
    answer: Tensor,
    rows: Tensor,
    norm: Norm | None,
    chance: Noise | None,
    *,
    tries: int = TRIES,
) -> Measured:
    """Measure the nearest success between the kept points of `rows` and their clean inputs; `answer` is that at `kept`.

    Along the line the margin is nearly linear: try just beyond its estimated zero, and continue between the last
    failure and the last success, halving that interval where the last try did not. A model that gives labels only, or
    answers at random, is bisected throughout. A try counts as a success by the judge's own rule, and only with a lead
    that rounding cannot undo.
    """
    x0, goal = target.x0[rows], target.goal.of(rows)
    x1, found = kept[rows], kept[rows].clone()
    low, high = torch.zeros(len(rows), dtype=torch.float64), torch.ones(len(rows), dtype=torch.float64)
    graded = target.model.capability != "labels" and not target.model.random
    below, above = (_margins(part, goal) if graded else high for part in (target.clean_answer[rows], answer[rows]))
    n_forward, bisect = 0, torch.full_like(low, not graded, dtype=torch.bool)
    for _ in range(tries):
        share = _next_share(low, high, below, above, bisect)
        x = _on_the_way(target.space, x0, x1, share.to(x0.device), norm)
        asked = redrawn(target.model, x, rows, chance)
        hit = asked.success_rate(goal) > 0.5
        if asked.answer.is_floating_point():
            hit &= clear_lead(asked.answer)
        found = torch.where(hit.view(-1, *[1] * (x.dim() - 1)), x, found)
        hit = hit.cpu()
        if graded:
            height = _margins(asked.answer, goal)
            below, above = torch.where(hit, below, height), torch.where(hit, height, above)
        halved = (high - low) / 2
        low, high = torch.where(hit, low, share), torch.where(hit, share, high)
        bisect = (high - low > halved) | (not graded)
        n_forward += asked.n
    space = target.space.to("cpu")
    return Measured({name: space.distance(found.cpu().double(), x0.cpu().double(), name) for name in NORMS}, n_forward)


def _next_share(low: Tensor, high: Tensor, below: Tensor, above: Tensor, bisect: Tensor) -> Tensor:
    """Where between `low`, which fails, and `high`, which succeeds, to try next; 0 is the clean input, 1 the kept."""
    crossing = (below / (below - above)).nan_to_num(nan=0.5).clamp(0, 1)
    crossing = torch.where(bisect, 0.5, crossing + _BEYOND * (1 - crossing))
    return ((low + crossing * (high - low)) * _GRID).ceil() / _GRID


def _on_the_way(space: Space, x0: Tensor, x1: Tensor, share: Tensor, norm: Norm | None) -> Tensor:
    """The allowed point at that share of the way from x0 to x1; in l0, with that share of the changed features."""
    wide = share.view(-1, *[1] * (x0.dim() - 1))
    if norm != "l0":
        return space.project(x0 + wide.to(x0.dtype) * (x1 - x0), x0)
    moved = space.difference(x1, x0).abs().flatten(1)
    rank = moved.argsort(1, descending=True, stable=True).argsort(1)
    stays = rank < (share * (moved > 0).sum(1)).ceil()[:, None]
    return torch.where(stays.view_as(x0), x1, x0)


def _margins(answer: Tensor, goal: Goal) -> Tensor:
    """How far each answer is from failure (below 0) or success, as float64 of float32: the last digits are noise."""
    return margin(answer.float(), goal).double().cpu()
