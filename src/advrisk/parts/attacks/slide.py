"""The nearest success in l1: the linearised problem, solved repeatedly within a box around the current point."""

import torch
from torch import Tensor

from advrisk.engine import Probe
from advrisk.engine.space import Space
from advrisk.parts.attacks.boundary import Nearest

_REACH = (0.3, 0.008)  # how far a feature may go in one step, as a share of its bounds' width: at first and at last
_FIRST_AIM, _LEAST_AIM, _LARGEST_AIM = 0.1, 2e-4, 0.5  # as shares of the climb


def slide(probe: Probe, nearest: Nearest, x: Tensor, rows: Tensor, steps: int) -> None:
    """From x, `steps` times, to the solution of the linearised problem; the box becomes smaller at each step.

    The target margin is half of the gap between the last answer and the linearised margin, and at least half of the
    target before. The slope is a running mean: on the tuning models it ended nearer than the last slope alone.
    """
    mean, aim, promised = torch.zeros_like(x), x.new_zeros(len(rows)), x.new_zeros(len(rows))
    for k in range(steps):
        if not len(rows):
            return
        x0, space = probe.x0[rows], probe.space
        queried, answered, _ = nearest.ask(x, rows)
        slope = answered.gradient("margin")
        mean = (mean + slope) / 2 if k else slope
        height = answered.heights("margin").to(x.dtype) + _gain(mean, x - queried)  # whole numbers were rounded
        climb = _gain(mean, x - x0).abs()
        aim = torch.maximum(promised - height, aim) / 2 if k else _FIRST_AIM * climb
        aim = aim.maximum(_LEAST_AIM * climb).minimum(_LARGEST_AIM * climb)
        reach = _REACH[0] * (_REACH[1] / _REACH[0]) ** (k / max(1, steps - 1))
        moved = nearest_in_reach(space, x, x0, mean, aim - height, reach)
        promised = height + _gain(mean, moved - x)
        going = probe.is_active(rows)
        rows, x, mean, aim, promised = (part[going] for part in (rows, moved, mean, aim, promised))
    if len(rows):
        nearest.ask(x, rows, gradient=False)


def _gain(slope: Tensor, step: Tensor) -> Tensor:
    """The gain of the step along the slope, for each row."""
    return (slope * step).flatten(1).sum(1)


def nearest_in_reach(space: Space, x: Tensor, x0: Tensor, slope: Tensor, gap: Tensor, reach: float) -> Tensor:
    """The point x' that solves

        minimise ‖x' − x0‖₁   subject to   slope · (x' − x) ≥ gap,   |x' − x| ≤ reach · (high − low),   low ≤ x' ≤ high

    or comes as near to the gap as it can. All features first go back as far as they may; from there every move costs
    the same, so the steepest features go first.
    """
    room = reach * (space.high - space.low)
    low, high = torch.maximum(x - room, space.low), torch.minimum(x + room, space.high)
    back = torch.minimum(torch.maximum(x0, low), high)
    back = back if space.category is None else torch.where(space.category, x, back)  # codes have no order to walk along
    missing = gap - _gain(slope, back - x)
    return back + space.step_to(back, slope, missing.clamp_min(0), "l1", within=(low, high))
