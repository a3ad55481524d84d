"""The nearest success for few passes: one step across the nearest boundary, then a ball that shrinks."""

from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.parts.attacks.boundary import Nearest, Schedule, shrink, step_across
from advrisk.parts.attacks.moves import Candidates, chosen, n_others
from advrisk.parts.attacks.registry import attacks
from advrisk.parts.attacks.slide import slide

_LEAD_STEPS, _LEAD = 5, Schedule(give=(0.3, 0.1), stride=(0.5, 0.1))
_IN_L2 = Schedule(give=(0.4, 0.01), stride=(1.0, 0.05))
_RESCUES = 4  # random inputs that a sample without a success is compared with
_TRIES_INWARDS, _STEPS_AFTER_RESCUE = 5, 10
_STEPS_BESIDE = _LEAD_STEPS + _STEPS_AFTER_RESCUE
_LAST_TRIES = 3


@attacks.register(
    "minimum-norm",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        passes=lambda given, classes: (
            given["steps"] + _STEPS_BESIDE + 5 + _RESCUES + _TRIES_INWARDS + _LAST_TRIES,
            given["steps"] + _STEPS_BESIDE + n_others(given["candidates"], classes),
        ),
        use_when="how far the nearest success is, for the fewest passes",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
    ),
    version=2,
)
def minimum_norm(probe: Probe, *, steps: Annotated[int, Ge(1)] = 22, candidates: Candidates = 4) -> None:
    """Our own schedule for minimal distances.

    DeepFool's first step goes just beyond the nearest of the linearised boundaries to some classes, by the shortest
    way in linf. In l2 and l1, a few steps look for a near success in linf: on many models a small change of all
    features leads to better places than a large change of some. From there, `steps` steps. In linf and l2 they climb
    the margin within a ball around the clean input that shrinks below each success and grows without one; in l1 they
    solve the linearised problem within a box (`slide`). A sample that the steps in linf did not break is compared with
    random inputs; what succeeds is drawn inwards and refined alike. At last, a search on the straight line to the clean
    input.
    """
    nearest, rows = Nearest(probe, "linf"), probe.active()
    if not len(rows):
        return
    x = step_across(probe, rows, candidates, "linf")
    if probe.norm == "linf":
        shrink(probe, nearest, x, rows, steps)
        rows = _found_by_chance(probe, nearest)
        shrink(probe, nearest, nearest.point[rows], rows, _STEPS_AFTER_RESCUE)
    else:
        shrink(probe, nearest, x, rows, _LEAD_STEPS, _LEAD)
        nearest = nearest.measured_in(probe.norm)
        _found_by_chance(probe, nearest)
        x = chosen(nearest.distance[rows].isfinite(), nearest.point[rows], x)
        _refine(probe, nearest, x, rows, steps)
    nearest.close_in(_LAST_TRIES)


def _refine(probe: Probe, nearest: Nearest, x: Tensor, rows: Tensor, steps: int) -> None:
    if probe.norm == "l1":
        slide(probe, nearest, x, rows, steps)
    else:
        shrink(probe, nearest, x, rows, steps, _IN_L2)


def _found_by_chance(probe: Probe, nearest: Nearest) -> Tensor:
    """Where slopes lead nowhere, a random input may still succeed; the rows for which one did, drawn inwards."""
    lost = _without_success(probe, nearest)
    for place in range(_RESCUES):
        rows = _without_success(probe, nearest)
        if not len(rows):
            break
        x = _random_inputs(probe, rows, corners=place % 2 == 1)
        nearest.note(x, rows, probe.forward(x, rows, gradient=False))
    rows = lost[torch.isin(lost, probe.active()) & nearest.distance[lost].isfinite()]
    nearest.close_in(_TRIES_INWARDS, rows)
    return rows


def _without_success(probe: Probe, nearest: Nearest) -> Tensor:
    rows = probe.active()
    return rows[nearest.distance[rows].isinf()]


def _random_inputs(probe: Probe, rows: Tensor, *, corners: bool) -> Tensor:
    """Points drawn uniformly from the box, or from its corners."""
    share = probe.noise.uniform(rows, tuple(probe.x0.shape[1:]))
    share = share.round() if corners else share
    return probe.space.project(probe.space.low + share * (probe.space.high - probe.space.low), probe.x0[rows])
