"""HopSkipJump: along the boundary towards the clean input, from labels alone."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.engine.norms import steepest
from advrisk.parts.attacks.moves import chosen, per_row, random_inputs, samples_at_once
from advrisk.parts.attacks.registry import attacks

_AT_ONCE = 64  # points of one sample in a batch
_HALVINGS = 20  # of a step, after which a sample stays where it is
_FINEST = 24  # bisections of a distance, after which float32 sees no difference
_POWER = {"l2": 1.5, "linf": 2.0}  # the boundary is searched to gamma / d^power of the distance
_Count = Annotated[int, Ge(1)]


def _passes(settings: Mapping[str, Any], _: int) -> tuple[int, int]:
    steps, sizes = settings["steps"], (settings["initial_evaluations"], settings["max_evaluations"])
    directions = sum(_evaluations(step, *sizes) for step in range(1, steps + 1))
    return settings["starts"] + _FINEST + directions + steps * (_HALVINGS + _FINEST) + 1, 0


@attacks.register(
    "hopskipjump",
    traits=AttackTraits(
        needs="labels",
        norms=("l2", "linf"),
        passes=_passes,
        use_when="you ask how near a success is, and the model returns nothing but its class",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
        box={"gamma": Box(0.01, 100.0)},
    ),
    version=2,
)
def hopskipjump(
    probe: Probe,
    *,
    steps: _Count = 40,
    initial_evaluations: _Count = 100,
    max_evaluations: _Count = 10_000,
    starts: _Count = 100,
    gamma: Annotated[float, Gt(0)] = 1.0,
) -> None:
    """HopSkipJump (Chen, Jordan & Wainwright 2020, arXiv:1904.02144).

    A random input that succeeds is drawn to the boundary by bisection: in l2 on the line to the clean input, in linf by
    clipping to a smaller box around it. At step t, min(initial_evaluations · √t, max_evaluations) points x + δu around
    it, δ = gamma · ‖x − x0‖ / d, estimate the gradient: Σ (φ − mean φ) · u, where φ is 1 at a success and else 0, and u
    does not lead beyond a bound. A step of length ‖x − x0‖ / √t that way is halved until it succeeds; then follows the
    next bisection, to a share gamma / d^1.5 (linf: gamma / d²) of the distance. A sample is given up if none of
    `starts` random inputs succeeds.
    """
    rows, x = _start(probe, starts)
    d = math.prod(probe.x0.shape[1:])
    bisections = min(_FINEST, max(1, math.ceil(math.log2(d ** _POWER[probe.norm] / gamma))))
    x = _to_boundary(probe, x, rows, bisections)
    for step in range(1, steps + 1):
        left = probe.is_active(rows)
        rows, x = rows[left], x[left]
        if not len(rows):
            return
        distance = probe.space.distance(x, probe.x0[rows], probe.norm)
        slope = _slopes(probe, x, rows, gamma / d * distance, _evaluations(step, initial_evaluations, max_evaluations))
        x = _step(probe, x, rows, steepest(slope, probe.norm), distance / math.sqrt(step))
        x = _to_boundary(probe, x, rows, bisections)
    if probe.task.keep == "last":  # the last bisection may have failed
        probe.labels(x, rows)


def _evaluations(step: int, initial: int, most: int) -> int:
    return min(int(initial * math.sqrt(step)), most)


def _start(probe: Probe, starts: int) -> tuple[Tensor, Tensor]:
    """The rows for which a random input succeeds, and these inputs; the attack gives up the others."""
    x, started = probe.x0.clone(), torch.zeros(len(probe.x0), dtype=torch.bool, device=probe.x0.device)
    for start in range(starts):
        rows = probe.active()
        rows = rows[~started[rows]]
        if not len(rows):
            break
        tried = random_inputs(probe, rows, corners=start % 2 == 1)
        hit = _met(probe, tried, rows)
        x[rows[hit]], started[rows[hit]] = tried[hit], True
    probe.no_start((~started).nonzero().squeeze(1))
    rows = started.nonzero().squeeze(1)
    return rows, x[rows]


def _to_boundary(probe: Probe, x: Tensor, rows: Tensor, bisections: int) -> Tensor:
    """The nearest success that bisection finds between the clean inputs and these points, which succeed."""
    x0, far = probe.x0[rows], x
    away, reach = far - x0, probe.space.distance(far, x0, probe.norm)
    low, high = torch.zeros_like(reach), torch.ones_like(reach)
    for _ in range(bisections):
        share = (low + high) / 2
        if probe.norm == "linf":
            between = torch.clamp(far, *probe.space.linf_bounds(x0, share * reach))
        else:
            between = x0 + per_row(share, far) * away
        between = probe.space.project(between, x0)
        hit = _met(probe, between, rows)
        x = chosen(hit, between, x)
        low, high = torch.where(hit, low, share), torch.where(hit, share, high)
    return x


def _slopes(probe: Probe, x: Tensor, rows: Tensor, delta: Tensor, evaluations: int) -> Tensor:
    """The estimated gradient at each point, in units of the scale, by the labels of points around it."""
    batches = math.ceil(evaluations / _AT_ONCE)
    n_parts = math.ceil(len(rows) / samples_at_once(probe, math.ceil(evaluations / batches)))
    parts = zip(*(torch.tensor_split(part, n_parts) for part in (x, rows, delta)), strict=True)
    return torch.cat([_slope(probe, *part, evaluations=evaluations) for part in parts])


def _slope(probe: Probe, x: Tensor, rows: Tensor, delta: Tensor, *, evaluations: int) -> Tensor:
    """Sums of whole numbers are exact: batch mates and the order of the points do not matter."""
    x0 = probe.x0[rows]
    n, shape, d = len(rows), tuple(x.shape[1:]), x[0].numel()
    unit = per_row(delta / math.sqrt(2 * d), x) * probe.space.scale  # of a direction, whose features have variance 2
    down, up = _open_ways(probe, x)
    n_met, all_sum, met_sum = x.new_zeros(n), x.new_zeros(n, d), x.new_zeros(n, d)
    batches = math.ceil(evaluations / _AT_ONCE)
    for batch in range(batches):  # of nearly equal size
        k = (evaluations + batch) // batches
        each = rows.repeat_interleave(k)
        way = probe.noise.bell(each, shape).view(n, k, *shape).clamp_(down, up)
        around = probe.space.project((way * unit[:, None]).add_(x[:, None]), x0[:, None])
        met = _met(probe, around.flatten(0, 1), each).view(n, 1, k).to(x.dtype)
        sums = torch.bmm(torch.cat([met, torch.ones_like(met)], 1), way.flatten(2))
        met_sum, all_sum, n_met = met_sum + sums[:, 0], all_sum + sums[:, 1], n_met + met.sum((1, 2))
    n_met, met_sum, all_sum = n_met.double()[:, None], met_sum.double(), all_sum.double()
    unanimous = (n_met == 0) | (n_met == evaluations)  # all labels agree: nothing to compare with
    slope = (
        torch.where(unanimous, 2 * met_sum - all_sum, evaluations * met_sum - n_met * all_sum).view_as(x).to(x.dtype)
    )
    return slope if probe.space.immutable is None else slope.masked_fill(probe.space.immutable, 0.0)


def _open_ways(probe: Probe, x: Tensor) -> tuple[Tensor, Tensor]:
    """The range of each feature's direction, down and up: not beyond a bound that the feature has reached."""
    down = torch.where(x <= probe.space.low, 0.0, -torch.inf)
    up = torch.where(x >= probe.space.high, 0.0, torch.inf)
    return down[:, None], up[:, None]


def _step(probe: Probe, x: Tensor, rows: Tensor, direction: Tensor, length: Tensor) -> Tensor:
    """The success at the end of the first of ever shorter steps that succeeds; x where none does."""
    x, trying = x.clone(), torch.arange(len(rows), device=rows.device)
    for _ in range(_HALVINGS):
        if not len(trying):
            break
        move = per_row(length[trying], x) * direction[trying] * probe.space.scale
        tried = probe.space.project(x[trying] + move, probe.x0[rows[trying]])
        hit = _met(probe, tried, rows[trying])
        x[trying[hit]] = tried[hit]
        trying, length = trying[~hit], length / 2
    return x


def _met(probe: Probe, x: Tensor, rows: Tensor) -> Tensor:
    return probe.goal.of(rows).met(probe.labels(x, rows))
