"""PGD: small steps along the gradient, each projected back, from a random start."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.engine.norms import random_in_ball
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "pgd",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=lambda given: (given["restarts"] * (given["steps"] + 1), given["restarts"] * given["steps"]),
        use_when="the standard white-box attack at a fixed eps; more steps and restarts make it stronger",
        random=True,
    ),
)
def pgd(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 40,
    step_size: Annotated[float, Gt(0)] | None = None,
    restarts: Annotated[int, Ge(1)] = 1,
    random_start: bool = True,
) -> None:
    """Projected gradient descent (Madry et al. 2018, arXiv:1706.06083).

    x ← project(x + step · steepest(∇J(x))), from a point drawn uniformly from the eps-ball.
    `step_size` is a length in the arm's norm; by default 2.5·eps/steps, but no less than eps/10.
    """
    for _ in range(restarts):
        x = probe.x0
        rows = probe.active()
        if random_start and len(rows):
            x = x.clone()
            start = random_in_ball(probe.noise, rows, tuple(x.shape[1:]), probe.norm, probe.eps)
            x[rows] = probe.project(x[rows] + start * probe.space.scale, rows)
        ascend(probe, x, steps=steps, step_size=step_size)


def ascend(probe: Probe, x: Tensor, *, steps: int, step_size: float | None) -> None:
    """`steps` projected gradient steps from x, on the samples that are still active."""
    step = max(2.5 * probe.eps / steps, probe.eps / 10) if step_size is None else step_size
    rows = probe.active()
    x = x[rows]
    for _ in range(steps):
        if not len(rows):
            return
        slope = probe.forward(x, rows).gradient(probe.task.objective)
        x = probe.climb(x, rows, slope, step)
        left = probe.active()
        if len(left) < len(rows):
            x, rows = x[_positions(left, rows)], left
    probe.forward(x, rows, gradient=False)


def _positions(left: Tensor, rows: Tensor) -> Tensor:
    """Where the rows that are left stand among the rows there were (both ascending)."""
    return torch.searchsorted(rows, left)
