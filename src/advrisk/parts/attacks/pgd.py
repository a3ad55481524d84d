"""PGD: small steps along the gradient, each projected back, from a random start."""

from typing import Annotated

from annotated_types import Ge, Gt
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import clean_start, point_in_ball, positions
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "pgd",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=lambda settings, _: (
            settings["restarts"] * (settings["steps"] + 1),
            settings["restarts"] * settings["steps"],
        ),
        use_when="you want the standard attack with gradients at a fixed eps; more steps and restarts make it stronger",
        random=True,
        box={
            "step_size": Box(
                0.01, 2.0, of_eps=True, usual=lambda settings, eps: step_length(eps, settings["steps"], None)
            )
        },
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
    step = step_length(probe.eps, steps, step_size)
    for _ in range(restarts):
        rows = probe.active()
        start = point_in_ball(probe, rows, probe.eps) if random_start else clean_start(probe, rows)
        ascend(probe, start, rows, steps, step)


def step_length(eps: float, steps: int, step_size: float | None) -> float:
    """`step_size`, or a default that is long enough to cross the ball and not so short that steps are wasted."""
    return max(2.5 * eps / steps, eps / 10) if step_size is None else step_size


def ascend(probe: Probe, x: Tensor, rows: Tensor, steps: int, step: float) -> None:
    """`steps` projected gradient steps from x, on the samples that are still active."""
    for _ in range(steps):
        if not len(rows):
            return
        slope = probe.forward(x, rows).gradient()
        x = probe.climb(x, rows, slope, step)
        left = probe.active()
        if len(left) < len(rows):
            x, rows = x[positions(left, rows)], left
    probe.forward(x, rows, gradient=False)
