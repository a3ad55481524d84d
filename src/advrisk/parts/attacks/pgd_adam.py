"""PGD-Adam: projected gradient steps whose direction Adam chooses."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.engine.norms import length
from advrisk.parts.attacks.adam import Adam
from advrisk.parts.attacks.moves import clean_start, per_row, point_in_ball, positions
from advrisk.parts.attacks.pgd import step_length
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "pgd-adam",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2"),
        objective="ace",
        passes=lambda settings, _: (
            settings["restarts"] * (settings["steps"] + 1),
            settings["restarts"] * settings["steps"],
        ),
        use_when="slopes differ much between features, or are noisy: Adam evens them out",
        random=True,
        box={
            "step_size": Box(
                0.01, 2.0, of_eps=True, usual=lambda settings, eps: step_length(eps, settings["steps"], None)
            )
        },
    ),
)
def pgd_adam(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 40,
    step_size: Annotated[float, Gt(0)] | None = None,
    restarts: Annotated[int, Ge(1)] = 1,
    random_start: bool = True,
) -> None:
    """Projected gradient descent (Madry et al. 2018) with the steps of Adam (Kingma & Ba 2015, arXiv:1412.6980).

    x ← project(x + step · m̂ / (√v̂ + 10⁻⁸)), with m̂ and v̂ the running means of the slope and of its square. In l2
    v̂ is one number for a whole row, and the direction has length one. `step_size` as for pgd.
    """
    step = step_length(probe.eps, steps, step_size)
    for _ in range(restarts):
        rows = probe.active()
        x = point_in_ball(probe, rows, probe.eps) if random_start else clean_start(probe, rows)
        adam = Adam(x, one_scale=probe.norm == "l2")
        for _ in range(steps):
            if not len(rows):
                return
            slope = probe.forward(x, rows).gradient()
            x = probe.project(x + step * probe.space.scale * _direction(probe, adam, slope), rows)
            left = probe.active()
            if len(left) < len(rows):
                staying = positions(left, rows)
                x, rows = x[staying], left
                adam.keep(staying)
        probe.forward(x, rows, gradient=False)


def _direction(probe: Probe, adam: Adam, slope: Tensor) -> Tensor:
    """Adam's direction for a slope of length one, so that the scale of the objective does not matter."""
    largest = slope.flatten(1).abs().amax(1)
    direction = adam.direction(slope / per_row(largest.clamp_min(torch.finfo(slope.dtype).tiny), slope))
    if probe.norm == "linf":
        return direction
    return direction / per_row(length(direction, "l2").clamp_min(1e-30), direction)
