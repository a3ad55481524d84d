"""DeepFool: straight to the nearest boundary of the linearised model, again and again."""

from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.parts.attacks.boundary import close_in, nearest_boundary
from advrisk.parts.attacks.moves import Candidates, n_others, other_classes, per_row
from advrisk.parts.attacks.registry import attacks

_TRIES_AT_LIMIT = 10
_BEYOND = 1e-4  # of the largest score: a step that ends at the boundary itself would be no success
_CLOSE = 0.01  # of the widest gap: from there on, the bounds must not cut a step short


@attacks.register(
    "deepfool",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2"),
        passes=lambda settings, classes: (
            settings["steps"] + 1 + settings["refine"],
            settings["steps"] * n_others(settings["candidates"], classes),
        ),
        use_when="a small perturbation is wanted in few passes; FAB and C&W find smaller ones and take longer",
        keep="smallest",
        needs_eps=False,
    ),
)
def deepfool(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 50,
    candidates: Candidates = 10,
    overshoot: Annotated[float, Ge(0)] = 0.02,
    refine: Annotated[int, Ge(0)] = 2,
) -> None:
    """DeepFool (Moosavi-Dezfooli et al. 2016, arXiv:1511.04599).

    x ← x + (1 + overshoot) · the shortest step at which the linearised lead of another class is zero, projected into
    the bounds; of the `candidates` classes that score best, the nearest counts. A sample is done when it succeeds; with
    an eps, also after ten steps at the limit. `refine` forward passes then search for a nearer success on the last
    step, which the overshoot made too long.
    """
    rows = probe.active()
    x = probe.x0[rows]
    before, x_before = (
        torch.zeros(len(rows), dtype=torch.float64, device=x.device),
        x,
    )  # margins and points of the pass before
    at_limit = torch.zeros(len(rows), dtype=torch.int64, device=x.device)
    widest = torch.zeros(len(probe.x0), device=x.device)  # the widest gap so far
    hits: list[tuple[Tensor, ...]] = []
    for k in range(steps + 1):
        if not len(rows):
            break
        answered = probe.forward(x, rows, gradient=k < steps)
        margin, hit = answered.heights("margin"), answered.met
        hits.append((x_before[hit], x[hit], rows[hit], before[hit], margin[hit]))
        going = ~hit & probe.is_active(rows)
        if k == steps or not bool(going.any()):
            break
        classes = other_classes(probe, rows, answered.scores, candidates)
        slope, gap = nearest_boundary(probe, answered, rows, classes, wanted=going)
        gap = gap.clamp_min(0) + _BEYOND * answered.scores.abs().amax(1)
        widest[rows] = widest[rows].fmax(gap)
        wanted = x + (1 + overshoot) * _step(probe, x, rows, slope, gap, gap < _CLOSE * widest[rows])
        moved = probe.project(wanted, rows)
        if probe.task.eps is not None:
            beyond = probe.space.distance(wanted, probe.x0[rows], probe.norm) > (1 + 2 * overshoot) * probe.eps
            at_limit = torch.where(beyond, at_limit + 1, 0)
        going &= (moved != x).flatten(1).any(1) & (at_limit < _TRIES_AT_LIMIT)
        x_before, before, at_limit = x[going], margin[going], at_limit[going]
        x, rows = moved[going], rows[going]
    if hits:
        outside, inside, rows, low, high = (torch.cat(parts) for parts in zip(*hits, strict=True))
        close_in(probe, outside, inside, rows, torch.stack([low, high]), tries=refine)


def _step(probe: Probe, x: Tensor, rows: Tensor, slope: Tensor, gap: Tensor, close: Tensor) -> Tensor:
    """The shortest step to the linearised boundary; close to it, the shortest that the bounds do not cut short."""
    steepness = probe.space.steepness(slope, probe.norm).clamp_min(1e-30)
    unit = slope.sign() if probe.norm == "linf" else slope * probe.space.scale / per_row(steepness, slope)
    step = per_row(gap / steepness, slope) * unit * probe.space.scale
    if bool(close.any()):
        within = None
        if probe.norm == "linf" and probe.task.eps is not None:
            within = probe.space.linf_bounds(probe.x0[rows[close]], probe.eps)
        step[close] = probe.space.step_to(x[close], slope[close], gap[close], probe.norm, within=within)
    return step
