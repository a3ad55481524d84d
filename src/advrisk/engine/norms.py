"""Lengths, steepest directions, random points and projections for l0, l1, l2 and linf.

Everything works on rows: the first dimension counts samples, the others are features. Nothing here
knows models.
"""

import torch
from torch import Tensor

from advrisk.engine.noise import Noise
from advrisk.study import Norm

NORMS: tuple[Norm, ...] = ("l0", "l1", "l2", "linf")


def length(delta: Tensor, norm: Norm) -> Tensor:
    """The norm of each row."""
    flat = delta.flatten(1)
    if norm == "linf":
        return flat.abs().amax(1)
    if norm == "l2":
        return flat.square().sum(1).sqrt()
    if norm == "l1":
        return flat.abs().sum(1)
    return (flat != 0).sum(1).to(flat.dtype)


def steepest(gradient: Tensor, norm: Norm, *, share: float = 0.02) -> Tensor:
    """For each row, a direction of length one (in `norm`) along which the gradient climbs fast.

    linf: its sign; l2: itself, scaled; l1: equal steps on the `share` of features with the largest
    slope (Tramèr & Boneh's sparse l1 descent: the exact answer, a single feature, is too slow).
    A row whose gradient is zero stays zero.
    """
    if norm == "linf":
        return gradient.sign()
    flat = gradient.flatten(1)
    direction: Tensor
    if norm == "l2":
        tiny = torch.finfo(flat.dtype).tiny
        flat = flat / flat.abs().amax(1, keepdim=True).clamp_min(tiny)  # squares of very small slopes would vanish
        direction = flat / flat.norm(dim=1, keepdim=True).clamp_min(tiny)
    else:
        count = max(1, round(share * flat.shape[1]))
        smallest_chosen = flat.abs().topk(count, dim=1).values[:, -1:]
        direction = equal_moves(flat, smallest_chosen)
    return direction.view_as(gradient)


def equal_moves(flat: Tensor, smallest_chosen: Tensor) -> Tensor:
    """Equal moves, of length one in l1 together, of a row's features whose slope is at least `smallest_chosen`."""
    direction = torch.where(flat.abs() >= smallest_chosen, flat.sign(), 0.0)
    return direction / direction.abs().sum(1, keepdim=True).clamp_min(1.0)


def random_in_ball(noise: Noise, rows: Tensor, shape: tuple[int, ...], norm: Norm, eps: float) -> Tensor:
    """A point drawn uniformly from the eps-ball for each row.

    Powers and logarithms in float64: in float32 torch's differ in the last bit between the body and the tail of a
    vector, so that a row's point would depend on how many others are drawn with it.
    """
    if norm == "linf":
        return (noise.uniform(rows, shape) * 2 - 1) * eps
    radius = noise.uniform(rows, (1,)).double()
    direction = noise.normal(rows, shape).double() if norm == "l2" else _laplace(noise.uniform(rows, shape).double())
    flat = direction.flatten(1)
    reach: Tensor = eps * radius.pow(1 / flat.shape[1]) / length(flat, norm).unsqueeze(1)
    return torch.mul(flat, reach).float().view_as(direction)


def _laplace(uniform: Tensor) -> Tensor:
    """Laplace variables: their direction is uniform on the l1 sphere."""
    centred = uniform - 0.5
    return -centred.sign() * torch.log1p(-2 * centred.abs().clamp_max(0.5 - 2**-25))


def project_ball_and_box(delta: Tensor, low: Tensor, high: Tensor, norm: Norm, eps: float | Tensor) -> Tensor:
    """The nearest point (in l2) of the eps-ball intersected with the box low <= delta <= high, which contains 0.

    `eps` is one number for all rows, or one for each.
    """
    boxed = torch.clamp(delta, low, high)
    limit = torch.as_tensor(eps, dtype=delta.dtype, device=delta.device).expand(len(delta))[:, None]
    flat = boxed.flatten(1)
    if norm == "linf":
        return torch.minimum(torch.maximum(flat, -limit), limit).view_as(delta)
    if norm == "l0":
        count = limit.clamp_max(flat.shape[1]).long()  # infinity is no whole number
        return _most_useful_entries(delta.flatten(1), flat, count).view_as(delta)
    outside = (length(boxed, norm)[:, None] > limit).nonzero()[:, 0]
    if len(outside):
        wanted, within = (part.flatten(1).index_select(0, outside) for part in (delta, boxed))
        shrink = _shrink_l2 if norm == "l2" else _shrink_l1
        # Features only shrink, so no bound beyond the boxed point can hold one back.
        flat.index_copy_(0, outside, wanted.sign() * shrink(wanted.abs(), within.abs(), limit[outside]))
    return flat.view_as(delta)


def _shrink_l2(size: Tensor, cap: Tensor, eps: Tensor) -> Tensor:
    """min(t·size, cap) with the one t at which its length is eps.

    With the capped features fixed, t follows in closed form. From the plain scaling eps/‖size‖ the
    steps climb, never overshoot, and end when the set of capped features no longer changes.
    """
    t = eps / size.norm(dim=1, keepdim=True)
    squares, caps, each = size.square(), cap.square(), torch.empty_like(size)  # written again and again: see hyperplane
    for _ in range(30):
        moved = t * size
        free = torch.le(moved, cap, out=each).mul_(squares).sum(1, keepdim=True)
        fixed = torch.gt(moved, cap, out=each).mul_(caps).sum(1, keepdim=True)
        climbed = torch.where(free > 0, ((eps**2 - fixed).clamp_min(0) / free).sqrt(), t).maximum(t)
        climbing = climbed > t * (1 + 1e-6)
        if not bool(climbing.any()):
            break
        t = torch.where(climbing, climbed, t)  # a finished row no longer moves, whatever its batch mates need
    return torch.minimum(t * size, cap)


def _shrink_l1(size: Tensor, cap: Tensor, eps: Tensor) -> Tensor:
    """min((size − m)₊, cap) with the one m at which its sum is eps: Newton's steps, kept in a bracket.

    In float64: far outside the ball size − m is a small difference of large numbers.
    """
    dtype, size, cap, eps = size.dtype, size.double(), cap.double(), eps.double()
    below = torch.zeros_like(size[:, :1])
    above = size.amax(1, keepdim=True)
    m = below
    for _ in range(50):
        moved = (size - m).clamp_min(0)
        excess = torch.minimum(moved, cap).sum(1, keepdim=True) - eps
        unsettled = excess.abs() > eps * 1e-6
        if not bool(unsettled.any()):
            break
        below, above = torch.where(excess > 0, m, below), torch.where(excess > 0, above, m)
        slope = ((moved > 0) & (moved < cap)).sum(1, keepdim=True)
        step = m + excess / slope  # infinite on a plateau, where the bracket is halved instead
        better = torch.where((step > below) & (step < above), step, (below + above) / 2)
        m = torch.where(unsettled, better, m)  # a finished row no longer moves, whatever its batch mates need
    shrunk = torch.minimum((size - m).clamp_min(0), cap)
    return torch.where(eps > 0, shrunk, 0.0).to(dtype)


def _most_useful_entries(delta: Tensor, boxed: Tensor, count: Tensor) -> Tensor:
    """The `count` entries of `boxed` that bring 0 nearest to delta: they save δ² − (δ − b)² = b(2δ − b)."""
    order = (boxed * (2 * delta - boxed)).argsort(dim=1, descending=True, stable=True)
    rank = torch.arange(delta.shape[1], device=delta.device)
    kept = boxed.gather(1, order).masked_fill(rank >= count, 0.0)
    return torch.zeros_like(boxed).scatter(1, order, kept)
