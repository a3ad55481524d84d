"""The nearest success in l1: the linearised problem, solved within a box around where one stands, again and again."""

import torch
from torch import Tensor

from advrisk.engine import Probe
from advrisk.engine.space import Space
from advrisk.parts.attacks.boundary import Nearest

_REACH = (0.3, 0.02)  # how far a feature may go in one step, as a share of its bounds' width: at first and at last
_FIRST_AIM, _LEAST_AIM, _LARGEST_AIM = 0.1, 1e-3, 0.5  # as shares of the climb


def slide(probe: Probe, nearest: Nearest, x: Tensor, rows: Tensor, steps: int) -> None:
    """From x, `steps` times, to the solution of the linearised problem; the box becomes smaller at each step.

    The margin to aim at is a share of the climb from the clean input, halved by each success and doubled by each
    failure. The slope is a running mean: at a kink steps would go to and fro between the slopes of both sides, and
    neither is that of the best point.
    """
    aim = torch.full((len(rows),), _FIRST_AIM, dtype=x.dtype, device=x.device)
    mean: Tensor | None = None
    for place in range(steps):
        if not len(rows):
            return
        x0, space = probe.x0[rows], probe.space
        asked = space.project(x, x0)
        answered = probe.forward(asked, rows)
        hit = nearest.note(asked, rows, answered)
        slope = answered.gradient("margin")
        mean = slope if mean is None else (mean + slope) / 2
        aim = torch.where(hit, aim / 2, aim * 2).clamp(_LEAST_AIM, _LARGEST_AIM)
        climb = (mean * (x - x0)).flatten(1).sum(1).abs()
        gap = aim * climb - answered.heights("margin").to(x.dtype)
        reach = _REACH[0] * (_REACH[1] / _REACH[0]) ** (place / max(1, steps - 1))
        x = nearest_in_reach(space, x, x0, mean, gap, reach)
        going = torch.isin(rows, probe.active())
        if not bool(going.all()):
            rows, x, mean, aim = rows[going], x[going], mean[going], aim[going]
    if len(rows):
        asked = probe.space.project(x, probe.x0[rows])
        nearest.note(asked, rows, probe.forward(asked, rows, gradient=False))


def nearest_in_reach(space: Space, x: Tensor, x0: Tensor, slope: Tensor, gap: Tensor, reach: float) -> Tensor:
    """The point x' that solves

        minimise ‖x' − x0‖₁   subject to   slope · (x' − x) ≥ gap,   |x' − x| ≤ reach · (high − low),   low ≤ x' ≤ high

    or comes as near to the gap as it can. All features go back as far as they may; from there every move away costs
    the same, so that the steepest go first.
    """
    room = reach * (space.high - space.low)
    low, high = torch.maximum(x - room, space.low), torch.minimum(x + room, space.high)
    back = torch.minimum(torch.maximum(x0, low), high)
    missing = gap - (slope * (back - x)).flatten(1).sum(1)
    return back + space.step_to(back, slope, missing.clamp_min(0), "l1", within=(low, high))
