"""The shortest way to a hyperplane without leaving a box: the step of DeepFool and FAB.

    minimise ‖δ‖   subject to   w·δ = gap,   low ≤ δ ≤ high

with low ≤ 0 ≤ high. Each feature moves to the side that helps, and only the bound on that side limits it. One number
per row remains (the size, the multiplier, or the number of moved features); the progress Σ |w| |δ| is an increasing,
concave, piecewise linear function of it. Where even the whole box does not reach, δ goes as far as it can.
"""

import torch
from torch import Tensor

from advrisk.study import Norm


def step_to_hyperplane(w: Tensor, gap: Tensor, low: Tensor, high: Tensor, norm: Norm) -> Tensor:
    """The δ above for each row; `gap` holds one number per row."""
    slope = w * torch.where(gap < 0, -1.0, 1.0).view(-1, *[1] * (w.dim() - 1))
    side = slope.sign()
    room = torch.maximum(side * high, side * low).nan_to_num_().flatten(1)  # no slope: no room
    size, gap = w.flatten(1).abs(), gap.to(w.dtype).abs()[:, None]
    steepest = size.amax(1, keepdim=True).clamp_min(torch.finfo(w.dtype).tiny)
    size, gap = size / steepest, (gap / steepest).clamp_max(torch.finfo(w.dtype).max)  # else tiny squares would vanish
    if norm == "l1":
        moved = _steepest_first(size, room, gap)
    else:
        moved = _grow_until(size, size.new_ones(()) if norm == "linf" else size, room, gap)
    return moved.view_as(w) * side


def dual_length(w: Tensor, norm: Norm) -> Tensor:
    """How much one unit of `norm` can gain along w: the dual norm of each row."""
    flat = w.flatten(1)
    if norm == "linf":
        return flat.abs().sum(1)
    if norm == "l1":
        return flat.abs().amax(1)
    return flat.square().sum(1).sqrt()


def _grow_until(size: Tensor, rate: Tensor, room: Tensor, gap: Tensor) -> Tensor:
    """min(t·rate, room) with the one t at which Σ size·min(t·rate, room) is the gap.

    Newton's steps from t = 0: on a concave function they never overshoot, and they end when no further feature meets
    its bound. One buffer is reused: allocating new ones would take as long as the arithmetic.
    """
    t = torch.zeros_like(gap)
    speeds, each = size * rate, torch.empty_like(room)
    close = 32 * torch.finfo(size.dtype).eps
    for _ in range(60):
        moved = t * rate
        speed = torch.lt(moved, room, out=each).mul_(speeds).sum(1, keepdim=True)
        missing = gap - torch.minimum(moved, room, out=each).mul_(size).sum(1, keepdim=True)
        moving = (missing > close * gap) & (speed > 0)
        if not bool(moving.any()):
            break
        t = torch.where(moving, (t + missing / speed).clamp_max(torch.finfo(t.dtype).max), t)
    return torch.minimum(t * rate, room)


def _steepest_first(size: Tensor, room: Tensor, gap: Tensor) -> Tensor:
    """Whole moves of the features with the largest slope, and a part of one more.

    In float64: in float32 the errors of a long running sum would add up.
    """
    order = size.float().argsort(dim=1, descending=True, stable=True)
    gain = (size * room).gather(1, order).double()
    before = gain.cumsum(1) - gain
    share = ((gap - before) / gain.clamp_min(1e-300)).clamp(0, 1)
    return torch.zeros_like(size).scatter(1, order, (share * room.gather(1, order)).to(size.dtype))
