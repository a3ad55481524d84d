"""Spatial: turned and shifted images, on a grid or along the gradient."""

from collections.abc import Iterator
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.errors import DataError
from advrisk.core.traits import AttackTraits, gives
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import positions
from advrisk.parts.attacks.registry import attacks

_MOST_AT_ONCE = 32  # grid points of one sample in a batch
_FINEST = 2.0**-20  # of a pixel: a number this near to a whole number becomes that number

Degrees = Annotated[float, Ge(0), Le(180)]
Pixels = Annotated[float, Ge(0)]
Count = Annotated[int, Ge(1)]


@attacks.register(
    "spatial",
    traits=AttackTraits(
        needs="labels",
        norms=(),
        passes=lambda settings, _: (settings["rotations"] * settings["translations"] ** 2 + 1, 0),
        use_when="you ask whether the model still works when an image is turned or shifted a little",
        keep="strongest",
        needs_eps=False,
        images=True,
        exhaustive=True,
    ),
)
def spatial(
    probe: Probe,
    *,
    max_rotation: Degrees = 30.0,
    max_translation: Pixels = 3.0,
    rotations: Count = 31,
    translations: Count = 5,
) -> None:
    """Worst case over a grid of rotations and translations (Engstrom et al. 2019, arXiv:1712.02779).

    `rotations` angles up to `max_rotation` degrees to either side, and `translations` shifts up to `max_translation`
    pixels on each axis, in all combinations: the smallest moves first. A sample is queried at 1, 2, 4, … 32, 32, …
    points at once: the fewer samples are left, the more points of each fill a batch.
    """
    grid = grid_points(max_rotation, max_translation, rotations, translations).to(probe.x0.device)
    worst = torch.zeros(len(probe.x0), dtype=torch.int64, device=grid.device)
    height = torch.full((len(probe.x0),), -torch.inf, dtype=torch.float64, device=grid.device)
    for first, last in _blocks(len(grid)):
        for rows in torch.split(probe.active(), max(1, len(probe.x0) // (last - first))):
            highest, index = _heights(probe, rows, grid[first:last], first).max(1)
            rising = highest > height[rows]
            height[rows] = torch.where(rising, highest, height[rows])
            worst[rows] = torch.where(rising, first + index, worst[rows])
    if probe.task.keep == "last":  # the last grid point is not the worst one
        rows = probe.active()
        probe.forward(_proposed(probe, rows, grid[worst[rows]]), rows, gradient=False)


@attacks.register(
    "spatial-gradient",
    traits=AttackTraits(
        needs="gradients",
        norms=(),
        objective="ace",
        passes=lambda settings, _: (
            settings["restarts"] * (settings["steps"] + 1),
            settings["restarts"] * settings["steps"],
        ),
        use_when="the grid of spatial takes too many passes; it often finds more",
        needs_eps=False,
        random=True,
        images=True,
    ),
)
def spatial_gradient(
    probe: Probe,
    *,
    max_rotation: Degrees = 30.0,
    max_translation: Pixels = 3.0,
    steps: Annotated[int, Ge(1)] = 10,
    step_size: Annotated[float, Gt(0), Le(1)] = 0.1,
    restarts: Annotated[int, Ge(1)] = 5,
) -> None:
    """Gradient steps on a rotation and a translation (Engstrom et al. 2019, arXiv:1712.02779).

    From a random angle and shift, each of the three numbers takes `steps` steps up its slope, of `step_size` times its
    largest value. Where the objective has no slope in a number, that number stays.
    """
    most = torch.tensor([max_rotation, max_translation, max_translation], dtype=torch.float64, device=probe.x0.device)
    for _ in range(restarts):
        rows = probe.active()
        move = (probe.noise.uniform(rows, (3,)).double() * 2 - 1) * most
        for _ in range(steps):
            if not len(rows):
                return
            uphill = _slope(probe, rows, move)
            left = probe.active()
            move = torch.clamp(move + step_size * most * uphill.sign(), -most, most)[positions(left, rows)]
            rows = left
        probe.forward(_proposed(probe, rows, move), rows, gradient=False)


def _slope(probe: Probe, rows: Tensor, move: Tensor) -> Tensor:
    """The slope of the objective in the three numbers of each row."""
    slope = probe.forward(_proposed(probe, rows, move), rows).gradient()
    with torch.enable_grad():
        move = move.detach().requires_grad_(True)
        (uphill,) = torch.autograd.grad(moved(probe.x0[rows], move, outside=probe.space.low), move, slope)
    return uphill


def _heights(probe: Probe, rows: Tensor, points: Tensor, first: int) -> Tensor:
    """Query each row at every point: the objective, or from labels alone the position of a success in the grid."""
    repeated = rows.repeat_interleave(len(points))
    passed = probe.forward(_proposed(probe, repeated, points.repeat(len(rows), 1)), repeated, gradient=False)
    if gives(probe.model.capability, "scores"):
        return passed.heights().view(len(rows), len(points))
    position = torch.arange(first + 1, first + len(points) + 1, dtype=torch.float64, device=rows.device)
    return passed.met.view(len(rows), len(points)) * position


def _proposed(probe: Probe, rows: Tensor, move: Tensor) -> Tensor:
    return probe.project(moved(probe.x0[rows], move, outside=probe.space.low), rows)


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    """First and last index of each block: 1, 2, 4, … points, then `_MOST_AT_ONCE` at a time, whatever the batch."""
    first, size = 0, 1
    while first < count:
        yield first, min(first + size, count)
        first, size = first + size, min(2 * size, _MOST_AT_ONCE)


def grid_points(max_rotation: float, max_translation: float, rotations: int, translations: int) -> Tensor:
    """Degrees, pixels down and pixels to the right, (points, 3), by their share of the limits, the smallest first."""
    shifts = _spread(max_translation, translations)
    grid = torch.cartesian_prod(_spread(max_rotation, rotations), shifts, shifts)
    return grid[(grid / grid.amax(0).clamp_min(_FINEST)).abs().amax(1).argsort(stable=True)]


def _spread(most: float, count: int) -> Tensor:
    """`count` equally spaced numbers from −most to most; 0 alone where there is no other."""
    if count == 1 or most == 0:
        return torch.zeros(1, dtype=torch.float64)
    return (2 * torch.arange(count, dtype=torch.float64) - (count - 1)) * most / (count - 1)


def moved(x: Tensor, move: Tensor, *, outside: Tensor) -> Tensor:
    """Images turned about their middle, against the clock, then shifted: degrees, pixels down and right for each row.

    Values between pixels are interpolated (bilinear); what comes from beyond the edge is `outside`. Differentiable in
    `move`. Quarter turns and shifts by whole pixels are exact.
    """
    if x.dim() != 4:
        raise DataError(f"only images can be turned and shifted, found inputs of shape {tuple(x.shape[1:])}")
    height, width = x.shape[2:]
    flat = x.flatten(2)
    result, covered = torch.zeros_like(flat), torch.zeros_like(flat[:, :1])
    down, right = _origins(move, height, width)
    top, left = down.detach().floor(), right.detach().floor()
    for i, tall in ((top, top + 1 - down), (top + 1, down - top)):
        for j, wide in ((left, left + 1 - right), (left + 1, right - left)):
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            share = (tall * wide * inside).to(x.dtype)[:, None]
            index = (i.clamp(0, height - 1) * width + j.clamp(0, width - 1)).long()[:, None]
            result = result + share * flat.gather(2, index.expand_as(flat))
            covered = covered + share
    return result.view_as(x) + (1 - covered).view(-1, 1, height, width) * outside


def _origins(move: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The origin of each pixel of a moved image, (rows, pixels) down and right."""
    middle_down, middle_right = (height - 1) / 2, (width - 1) / 2
    down, right = (torch.arange(size, dtype=move.dtype, device=move.device) for size in (height, width))
    i = down.repeat_interleave(width) - middle_down - move[:, 1:2]
    j = right.repeat(height) - middle_right - move[:, 2:3]
    cos, sin = torch.deg2rad(move[:, :1]).cos(), torch.deg2rad(move[:, :1]).sin()
    return _snapped(cos * i + sin * j + middle_down), _snapped(cos * j - sin * i + middle_right)


def _snapped(position: Tensor) -> Tensor:
    """Positions rounded to multiples of `_FINEST`; slopes stay unchanged."""
    return position + ((position / _FINEST).round() * _FINEST - position).detach()
