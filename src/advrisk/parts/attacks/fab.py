"""FAB: along the boundary of the linearised model, always pulled towards the clean input."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.engine.norms import random_in_ball
from advrisk.parts.attacks.boundary import Nearest, nearest_boundary
from advrisk.parts.attacks.moves import chosen, n_others, other_classes, per_row, towards_classes
from advrisk.parts.attacks.registry import attacks

_LAST_TRIES = 3  # passes of the final search between the best point and the clean input
_FIRST_REACH = 0.5  # of the best distance (or eps): the largest distance at which restarts begin
_Share = Annotated[float, Gt(0), Le(1)]


def _passes(runs: int, backward: int, steps: int) -> tuple[int, int]:
    return 2 + runs * 2 * steps + _LAST_TRIES, runs * steps * backward


@attacks.register(
    "fab",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        passes=lambda settings, classes: _passes(settings["restarts"], classes - 1, settings["steps"]),
        use_when="the smallest perturbation is wanted; with many classes fab-t is far cheaper",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
        box={"pull": Box(0.01, 1.0)},
    ),
)
def fab(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 100,
    restarts: Annotated[int, Ge(1)] = 1,
    pull: _Share = 0.1,
    overshoot: Annotated[float, Ge(1)] = 1.05,
    backward: _Share = 0.9,
) -> None:
    """Fast adaptive boundary attack (Croce & Hein 2020, arXiv:1907.02044).

    x ← (1 − a)(x + overshoot · δ) + a(x0 + overshoot · δ0): δ and δ0 are the shortest steps within the bounds from x
    and from x0 to the linearised boundary of the nearest class, and a = min(‖δ‖ / (‖δ‖ + ‖δ0‖), pull). After a success
    x ← x0 + backward · (x − x0). A final search lies between the best point and the clean input.
    """
    nearest = Nearest(probe)
    for restart in range(restarts):
        rows = probe.active()
        x = _start(probe, rows, nearest, first=restart == 0)
        _search(probe, nearest, x, rows, None, steps=steps, pull=pull, overshoot=overshoot, backward=backward)
    nearest.close_in(_LAST_TRIES)


@attacks.register(
    "fab-t",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        passes=lambda settings, classes: _passes(
            settings["restarts"] * n_others(settings["targets"], classes), 1, settings["steps"]
        ),
        use_when="the smallest perturbation is wanted of a model with many classes",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
        box={"pull": Box(0.01, 1.0)},
    ),
    version=2,
)
def fab_t(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 100,
    targets: Annotated[int, Ge(1)] = 9,
    restarts: Annotated[int, Ge(1)] = 1,
    pull: _Share = 0.1,
    overshoot: Annotated[float, Ge(1)] = 1.05,
    backward: _Share = 0.9,
) -> None:
    """Targeted FAB (Croce & Hein 2020, arXiv:1907.02044): FAB towards the best wrong class, then all others.

    One gradient per step, whatever the number of classes.
    """
    nearest = Nearest(probe)
    for rows, towards in towards_classes(probe, targets):
        for restart in range(restarts):
            left = probe.is_active(rows)
            rows, towards = rows[left], towards[left]
            x = _start(probe, rows, nearest, first=restart == 0)
            _search(probe, nearest, x, rows, towards, steps=steps, pull=pull, overshoot=overshoot, backward=backward)
    nearest.close_in(_LAST_TRIES)


def _start(probe: Probe, rows: Tensor, nearest: Nearest, *, first: bool) -> Tensor:
    """The clean inputs; for a restart, random points at no more than half the best distance."""
    x0 = probe.x0[rows]
    if first:
        return x0
    limit = probe.task.eps if probe.task.eps is not None else float("inf")
    reach = nearest.distance[rows].clamp_max(limit) * _FIRST_REACH
    reach = torch.where(reach.isfinite(), reach, _FIRST_REACH)
    jump = random_in_ball(probe.noise, rows, tuple(x0.shape[1:]), probe.norm, 1.0)
    return probe.space.project(x0 + per_row(reach, x0) * jump * probe.space.scale, x0)


def _search(
    probe: Probe,
    nearest: Nearest,
    x: Tensor,
    rows: Tensor,
    towards: Tensor | None,
    *,
    steps: int,
    pull: float,
    overshoot: float,
    backward: float,
) -> None:
    """`steps` steps from x, towards one class per row or the nearest of all."""
    for _ in range(steps):
        if not len(rows):
            return
        x0 = probe.x0[rows]
        x, _, hit = nearest.ask(_step(probe, x, rows, towards, pull, overshoot), rows, gradient=False)
        x = chosen(hit, probe.space.project(x0 + backward * (x - x0), x0), x)
        going = probe.is_active(rows)
        if not bool(going.all()):
            x, rows, towards = x[going], rows[going], None if towards is None else towards[going]


def _step(probe: Probe, x: Tensor, rows: Tensor, towards: Tensor | None, pull: float, overshoot: float) -> Tensor:
    x0, space, norm = probe.x0[rows], probe.space, probe.norm
    answered = probe.forward(x, rows)
    classes = other_classes(probe, rows, answered.scores, "all") if towards is None else towards[:, None]
    slope, gap = nearest_boundary(probe, answered, rows, classes)
    step = space.step_to(x, slope, gap, norm)
    step_clean = space.step_to(x0, slope, gap - (slope * (x0 - x)).flatten(1).sum(1), norm)
    size, size_clean = space.distance(x + step, x, norm), space.distance(x0 + step_clean, x0, norm)
    share = per_row((size / (size + size_clean).clamp_min(1e-30)).clamp_max(pull), x)
    return (1 - share) * (x + overshoot * step) + share * (x0 + overshoot * step_clean)
