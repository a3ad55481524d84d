"""NES: climbing by slopes that are estimated from scores alone."""

from collections.abc import Callable, Sequence
from typing import Annotated

import torch
from annotated_types import Ge, Gt, MultipleOf
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Pass, Probe
from advrisk.engine.norms import steepest
from advrisk.parts.attacks.moves import positions, samples_at_once
from advrisk.parts.attacks.registry import attacks

_PAIRS_AT_ONCE = 16  # of points of one sample in a batch


@attacks.register(
    "nes",
    traits=AttackTraits(
        needs="scores",
        norms=("linf", "l2"),
        objective="margin",
        passes=lambda settings, _: (settings["steps"] * (settings["samples"] + 1), 0),
        use_when="a model gives scores but no gradients, and its inputs are not images",
        within_eps=False,
        random=True,
        # The values to begin with are those of Feng et al. (PROSAC, arXiv:2402.02629).
        box={
            "sigma": Box(1e-4, 0.1, start=(0.005, 0.01, 0.015)),
            "step_size": Box(1e-3, 1.0, start=(0.01, 0.02, 0.03)),
        },
    ),
)
def nes(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 100,
    samples: Annotated[int, Ge(2), MultipleOf(2)] = 50,
    sigma: Annotated[float, Gt(0)] = 0.001,
    step_size: Annotated[float, Gt(0)] = 0.01,
    signed: bool = False,
) -> None:
    """Natural evolution strategies (Ilyas et al. 2018, arXiv:1804.08598).

    x ← project(x + step_size · g). The slope g of the objective f is estimated from `samples` points in pairs x ± σu,
    with u normal: the mean over the pairs of (f(x + σu) − f(x − σu)) / 2σ · u. If `signed`, the direction of length one
    that climbs g fastest takes its place: in linf the sign of g.
    """
    rows = probe.active()
    x = probe.x0[rows]
    for _ in range(steps):
        if not len(rows):
            return
        slope = slopes(probe, x, rows, samples // 2, sigma)
        move = steepest(slope, probe.norm) if signed else slope
        x = probe.project(x + step_size * move * probe.space.scale, rows)
        probe.forward(x, rows, gradient=False)
        left = probe.active()
        if len(left) < len(rows):
            rows, x = left, x[positions(left, rows)]


def slopes(probe: Probe, x: Tensor, rows: Tensor, pairs: int, sigma: float) -> Tensor:
    """The estimated slope of the objective at each point, in units of the scale."""
    (slope,) = estimated(probe, x, rows, pairs, sigma, (Pass.heights,))
    return slope


def estimated(
    probe: Probe, x: Tensor, rows: Tensor, pairs: int, sigma: float, values: Sequence[Callable[[Pass], Tensor]]
) -> list[Tensor]:
    """The estimated slopes of several values of a pass at each point, from the same points around it."""
    size = samples_at_once(probe, 2 * _PAIRS_AT_ONCE)
    parts = zip(torch.split(x, size), torch.split(rows, size), strict=True)
    slopes = [_estimated(probe, *part, pairs, sigma, values) for part in parts]
    return [torch.cat(column) for column in zip(*slopes, strict=True)]


def _estimated(
    probe: Probe, x: Tensor, rows: Tensor, pairs: int, sigma: float, values: Sequence[Callable[[Pass], Tensor]]
) -> list[Tensor]:
    """The same for one batch. Pairs are added one by one, in float64: batch mates do not matter."""
    n, shape = len(rows), tuple(x.shape[1:])
    totals = [torch.zeros_like(x, dtype=torch.float64) for _ in values]
    for done in range(0, pairs, _PAIRS_AT_ONCE):
        k = min(_PAIRS_AT_ONCE, pairs - done)
        way = probe.noise.normal(rows.repeat_interleave(k), shape).view(n, k, *shape)
        move = sigma * way * probe.space.scale
        around = torch.cat([x[:, None] + move, x[:, None] - move], 1).flatten(0, 1)
        each = rows.repeat_interleave(2 * k)
        around = probe.space.project(around, probe.x0[each])
        answered = probe.forward(around, each, gradient=False)
        for total, value in zip(totals, values, strict=True):
            around_values = value(answered).view(n, 2, k)
            gain = (around_values[:, 0] - around_values[:, 1]) / (2 * sigma)
            for pair in range(k):
                total += gain[:, pair].view(-1, *[1] * len(shape)) * way[:, pair].double()
    immutable = probe.space.immutable
    slopes = [(total / pairs).to(x.dtype) for total in totals]
    return slopes if immutable is None else [slope.masked_fill(immutable, 0.0) for slope in slopes]
